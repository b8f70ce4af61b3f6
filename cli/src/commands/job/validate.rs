//! `kafila job validate`

use model::{FieldErrors, Timestamp};

use crate::args::job::Validate;
use crate::context::Context;
use crate::diagnostic;
use crate::error::Error;
use crate::exit::Exit;
use crate::jobfile;

/// Checks with the same rules that the gateway has, then asks the gateway what only it can know.
pub(crate) async fn run(context: &Context, args: &Validate) -> Result<Exit, Error> {
    let colour = context.printer.colour_err;
    let parsed = jobfile::read(&args.file, colour)?;
    let invalid = |errors: &FieldErrors| jobfile::invalid(&parsed, errors, colour);
    let offline = jobfile::check(&parsed, Timestamp(context.clock.now()), colour)?;

    let mut job = jobfile::to_wire(&parsed, colour)?;
    job.namespace = Some(jobfile::namespace(
        &job,
        context.namespace_flag.as_deref(),
        context.connection.namespace(),
    )?);
    let mut warnings = parsed.warnings.clone();
    match context.connection.validate(job).await {
        Ok(answer) => {
            let violations = answer.violations;
            if !violations.is_empty() {
                let detail = proto::v1::ErrorDetail {
                    violations,
                    ..proto::v1::ErrorDetail::default()
                };
                return Err(invalid(&detail.field_errors()));
            }
            warnings.extend(answer.warnings);
        }
        Err(error) if error.is_unreachable() => {
            warnings.extend(offline);
            context.printer.err(&format!(
                "Checked without the cluster: the gateway at {} cannot be reached ({}), so nothing \
                 was checked that only it knows.",
                context.connection.address().url,
                error.reason()
            ));
        }
        Err(error) => match error.field_errors() {
            Some(errors) => return Err(invalid(&errors)),
            None => return Err(error),
        },
    }
    if !warnings.is_empty() {
        context
            .printer
            .err(&diagnostic::warnings(&warnings, colour));
    }
    context.printer.out("Job validation successful")?;
    Ok(Exit::Success)
}
