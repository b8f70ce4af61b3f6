//! `kafila job dispatch` and `kafila job periodic force`

use std::io::Read as _;
use std::path::Path;

use model::Payload;
use proto::v1;

use super::watch;
use crate::args::job::operations::{Dispatch, Force};
use crate::commands::key_value;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::fields::Fields;
use crate::resolve;

pub(crate) async fn dispatch(context: &Context, args: &Dispatch) -> Result<Exit, Error> {
    let meta = key_value::parse(&args.meta)?;
    let payload = match &args.payload {
        Some(path) => read_payload(path)?,
        None => Vec::new(),
    };
    let style = context.style_err(args.verbose);
    let job = resolve::job(&context.connection, &args.id, &style).await?;
    if !job.parameterized {
        return Err(other_kind("parameterized", &args.id, &job));
    }
    let request = v1::DispatchJobRequest {
        namespace: job.namespace.clone(),
        job_id: job.id.clone(),
        payload,
        meta,
        idempotency_token: args.idempotency_token.clone().unwrap_or_default(),
        id_prefix_template: args.id_prefix_template.clone().unwrap_or_default(),
        priority: args.priority.unwrap_or_default(),
    };
    let answer = context.connection.dispatch(request).await?;
    let child = &answer.dispatched_job_id;
    let mut fields = Fields::new();
    fields.add("Dispatched Job ID", child);
    if !answer.eval_id.is_empty() {
        fields.add("Evaluation ID", &answer.eval_id);
    }
    context.printer.out(&fields.render())?;
    if args.detach || answer.eval_id.is_empty() {
        return Ok(Exit::Success);
    }
    watch::job(
        context,
        (&job.namespace, child),
        answer.eval_id,
        args.verbose,
    )
    .await
}

pub(crate) async fn force(context: &Context, args: &Force) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let job = resolve::job(&context.connection, &args.id, &style).await?;
    if !job.periodic {
        return Err(other_kind("periodic", &args.id, &job));
    }
    let request = v1::ForcePeriodicJobRequest {
        namespace: job.namespace.clone(),
        job_id: job.id.clone(),
    };
    let answer = context.connection.force_periodic(request).await?;
    if args.detach {
        context.printer.out("Force periodic successful")?;
        return context.finish(&format!("Evaluation ID: {}", answer.eval_id));
    }
    watch::job(
        context,
        (&job.namespace, &answer.child_job_id),
        answer.eval_id,
        args.verbose,
    )
    .await
}

/// The error for a job of another kind.
fn other_kind(wanted: &str, prefix: &str, found: &v1::JobStub) -> Error {
    let kind = match (found.parameterized, found.periodic) {
        (true, _) => "parameterized",
        (_, true) => "periodic",
        _ => found.r#type.as_str(),
    };
    Error::text(format!(
        "No {wanted} job(s) with prefix or ID {prefix:?} found\n\
         {:?} is a {kind} job, which has no {wanted} block.",
        found.id
    ))
}

/// Reads a file or standard input, up to one byte more than the maximum, so that a device or an
/// endless pipe is refused.
fn read_payload(path: &Path) -> Result<Vec<u8>, Error> {
    let limit = u64::try_from(Payload::MAX_BYTES).unwrap_or(u64::MAX);
    let mut payload = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(limit + 1).read_to_end(&mut payload)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut payload))
    };
    read.map_err(|error| Error::text(format!("Error reading input data {path:?}: {error}")))?;
    if payload.len() > Payload::MAX_BYTES {
        return Err(Error::text(format!(
            "Error reading input data {path:?}: more than {limit} bytes. Pass a reference to \
             the data instead"
        )));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_above_the_maximum_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("payload");
        std::fs::write(&path, vec![7; Payload::MAX_BYTES]).unwrap();
        assert_eq!(read_payload(&path).unwrap().len(), Payload::MAX_BYTES);
        std::fs::write(&path, vec![7; Payload::MAX_BYTES + 1]).unwrap();
        assert!(
            read_payload(&path)
                .unwrap_err()
                .to_string()
                .contains("16384 bytes")
        );
        assert!(read_payload(&folder.path().join("none")).is_err());
        assert!(read_payload(Path::new("/dev/zero")).is_err());
    }
}
