//! `kafila job dispatch|scale|scaling-events|periodic force|eval|allocs|deployments`

use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;

use model::Payload;
use proto::v1;

use super::watch::{self, Watch};
use crate::args::job_operations::{
    Allocs, Deployments, Dispatch, Eval, Force, Scale, ScalingEvents,
};
use crate::commands::deployment;
use crate::connection::Blocking;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::monitor::{Goal, Subject};
use crate::output::fields::Fields;
use crate::output::json::pretty;
use crate::render;
use crate::resolve;

pub(crate) async fn dispatch(context: &Context, args: &Dispatch) -> Result<Exit, Error> {
    let meta = read_meta(&args.meta)?;
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
    let started = Started {
        namespace: &job.namespace,
        job_id: child,
        verbose: args.verbose,
    };
    started.follow(context, answer.eval_id).await
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
        context
            .printer
            .out(&format!("Evaluation ID: {}", answer.eval_id))?;
        return Ok(Exit::Success);
    }
    let started = Started {
        namespace: &job.namespace,
        job_id: &answer.child_job_id,
        verbose: args.verbose,
    };
    started.follow(context, answer.eval_id).await
}

/// The job that was named is not of the kind that is wanted.
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

pub(crate) async fn eval(context: &Context, args: &Eval) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let job = resolve::job(&context.connection, &args.id, &style).await?;
    let request = v1::EvaluateJobRequest {
        namespace: job.namespace.clone(),
        job_id: job.id.clone(),
        force_reschedule: args.force_reschedule,
    };
    let answer = context.connection.evaluate_job(request).await?;
    warn_if_stopped(context, &job);
    context
        .printer
        .out(&format!("Created eval ID: \"{}\"", answer.eval_id))?;
    if args.detach {
        return Ok(Exit::Success);
    }
    let started = Started {
        namespace: &job.namespace,
        job_id: &job.id,
        verbose: args.verbose,
    };
    started.follow(context, answer.eval_id).await
}

pub(crate) async fn scale(context: &Context, args: &Scale) -> Result<Exit, Error> {
    let (group, count) = match args.group_and_count.as_slice() {
        [count] => (None, count),
        [group, count, ..] => (Some(group), count),
        [] => {
            return Err(Error::text(
                "Missing count: kafila job scale ID [GROUP] COUNT",
            ));
        }
    };
    let count = read_count(count)?;
    let connection = &context.connection;
    let style = context.style_err(args.verbose);
    let job = resolve::job(connection, &args.id, &style).await?;
    let task_group = match group {
        Some(group) => group.clone(),
        None => only_group(context, &job).await?,
    };
    let request = v1::ScaleJobRequest {
        namespace: job.namespace.clone(),
        job_id: job.id.clone(),
        task_group,
        count: Some(count),
        message: "submitted using the Kafila CLI".to_owned(),
        check_index: args.check_index.unwrap_or_default(),
        ..v1::ScaleJobRequest::default()
    };
    let answer = connection.scale(request).await?;
    warn_if_stopped(context, &job);
    if args.detach || answer.eval_id.is_empty() {
        context.printer.out("Job scale successful")?;
        if !answer.eval_id.is_empty() {
            context
                .printer
                .out(&format!("Evaluation ID: {}", answer.eval_id))?;
        }
        return Ok(Exit::Success);
    }
    let started = Started {
        namespace: &job.namespace,
        job_id: &job.id,
        verbose: args.verbose,
    };
    started.follow(context, answer.eval_id).await
}

/// Says why nothing will run: the evaluation of a stopped job is complete with nothing placed.
fn warn_if_stopped(context: &Context, job: &v1::JobStub) {
    if job.stop {
        context.printer.err(&format!(
            "Warning: job {:?} is stopped: 'kafila job run FILE' starts it",
            job.id
        ));
    }
}

async fn only_group(context: &Context, stub: &v1::JobStub) -> Result<String, Error> {
    let found = context
        .connection
        .job(&stub.namespace, &stub.id, None)
        .await?;
    let groups: Vec<&str> = found
        .job
        .task_groups
        .iter()
        .map(v1::TaskGroup::name)
        .collect();
    match groups.as_slice() {
        [one] => Ok((*one).to_owned()),
        several => Err(Error::text(format!(
            "Group name required: job {:?} has {}, as in kafila job scale {} {} 3",
            stub.id,
            several.join(", "),
            stub.id,
            several.first().unwrap_or(&"GROUP"),
        ))),
    }
}

pub(crate) async fn scaling_events(context: &Context, args: &ScalingEvents) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let job = resolve::job(&context.connection, &args.id, &style).await?;
    let status = context
        .connection
        .scale_status(&job.namespace, &job.id)
        .await?;
    if args.json {
        context
            .printer
            .out(&pretty(&json::scaling::events(&status)))?;
        return Ok(Exit::Success);
    }
    let table = render::children::scaling_events(&status, &context.style(args.verbose));
    let text = match table {
        Some(table) => table.render(),
        None => "No events found".to_owned(),
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}

pub(crate) async fn allocs(context: &Context, args: &Allocs) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let connection = &context.connection;
    let job = resolve::job(connection, &args.id, &style).await?;
    let allocs = connection
        .job_allocations(&job.namespace, &job.id, args.all)
        .await?;
    let text = if args.json {
        let allocs: Vec<json::alloc::Allocation<'_>> = allocs.iter().map(Into::into).collect();
        pretty(&allocs)
    } else {
        render::alloc::section(&allocs, &context.style(args.verbose))
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}

pub(crate) async fn deployments(context: &Context, args: &Deployments) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let connection = &context.connection;
    let stub = resolve::job(connection, &args.id, &style).await?;
    let blocking = Blocking::default();
    let (mut deployments, _) = connection
        .job_deployments(&stub.namespace, &stub.id, blocking)
        .await?;
    if !args.all {
        deployments.retain(|deployment| deployment.job_create_index == stub.create_index);
    }
    deployments.sort_by_key(|deployment| std::cmp::Reverse(deployment.create_index));
    let latest = deployments.first().filter(|_| args.latest);
    if let Some(latest) = latest {
        return deployment::show(context, latest, args.verbose, args.json).await;
    }
    let text = if args.json {
        let shown: Vec<json::deployment::Deployment<'_>> =
            deployments.iter().map(Into::into).collect();
        pretty(&shown)
    } else if deployments.is_empty() {
        "No deployments found".to_owned()
    } else {
        render::deployment::table(&deployments, &context.style(args.verbose)).render()
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}

/// A job that something was set off for.
struct Started<'a> {
    namespace: &'a str,
    job_id: &'a str,
    verbose: bool,
}

impl Started<'_> {
    async fn follow(&self, context: &Context, eval_id: String) -> Result<Exit, Error> {
        let job_id = self.job_id;
        let watch = Watch {
            subject: Subject::Evaluation(eval_id),
            goal: Goal::Start,
            namespace: self.namespace,
            verbose: self.verbose,
            label: None,
        };
        let goes_on = format!(
            "The job {job_id:?} goes on without being watched: see 'kafila job status {job_id}'"
        );
        watch::until_ended(context, watch, &goes_on).await
    }
}

/// Reads how many allocations a group is to have. `+2` is none: it might mean two more.
fn read_count(text: &str) -> Result<u32, Error> {
    let is_digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if !is_digits {
        return Err(Error::text(format!(
            "{text:?} is no count: want a whole number, 0 or more, as in kafila job scale ID GROUP 3"
        )));
    }
    let count = text.parse().ok();
    let count = count.filter(|count: &u32| u64::from(*count) <= jobspec::MAX_TOTAL_COUNT);
    count.ok_or_else(|| {
        Error::text(format!(
            "{text} is more than a job may have, {}: want less",
            jobspec::MAX_TOTAL_COUNT
        ))
    })
}

/// Reads `KEY=VALUE`s; of two with one key the later one counts.
fn read_meta(words: &[String]) -> Result<HashMap<String, String>, Error> {
    let mut meta = HashMap::new();
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Error::text(format!(
                "Error parsing meta value {word:?}: want KEY=VALUE, as in -meta input=a.csv"
            )));
        };
        meta.insert(key.to_owned(), value.to_owned());
    }
    Ok(meta)
}

/// Reads a file, or standard input; no more than a payload may have, so that a device or an endless
/// pipe is refused as well.
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
            "Error reading input data {path:?}: more than {limit} bytes, pass a reference to it \
             instead"
        )));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_is_keys_with_values() {
        let words = ["a=1", "b=x=y", "c=", "a=2"].map(str::to_owned);
        let meta = read_meta(&words).unwrap();
        assert_eq!(
            (meta["a"].as_str(), meta["b"].as_str(), meta["c"].as_str()),
            ("2", "x=y", "")
        );
        for wrong in ["a", "=1", ""] {
            let error = read_meta(&[wrong.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("want KEY=VALUE"), "{error}");
        }
    }

    #[test]
    fn a_count_is_digits_and_no_more_than_a_job_may_have() {
        assert_eq!(read_count("0").unwrap(), 0);
        assert_eq!(read_count("50000").unwrap(), 50_000);
        for text in ["+2", "-1", "", "two", "1.5", "2 "] {
            let message = read_count(text).unwrap_err().to_string();
            assert!(message.contains("is no count"), "{message}");
        }
        for text in ["50001", "99999999999"] {
            let message = read_count(text).unwrap_err().to_string();
            assert!(
                message.contains("more than a job may have, 50000"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_payload_is_no_larger_than_it_may_be() {
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
