//! `kafila job validate`

use model::{FieldErrors, Timestamp};

use crate::args::job::Validate;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::files::diagnostic;
use crate::files::job as job_file;

/// Checks the job by the rules of the gateway, then asks the gateway for the checks that need the
/// cluster.
pub(crate) async fn run(context: &Context, args: &Validate) -> Result<Exit, Error> {
    let colour = context.printer.colour_err;
    let parsed = job_file::read(&args.file, colour)?;
    let invalid = |errors: &FieldErrors| job_file::invalid(&parsed, errors, colour);
    let offline = job_file::check(&parsed, Timestamp(context.clock.now()), colour)?;

    let mut job = parsed.job.clone();
    job.namespace = Some(job_file::namespace(
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
                "Checked without the cluster: the gateway at {} cannot be reached ({}). Checks that \
                 need the cluster were skipped.",
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
    context.finish("Job validation successful")
}
