//! `kafila job scale` and `kafila job scaling-events`

use proto::v1;

use super::watch;
use crate::args::job::operations::{Scale, ScalingEvents};
use crate::commands::confirm;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::output::json::pretty;
use crate::{render, resolve};

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
    if let Some(end) = confirm::job(context, (&job, &args.id), args.yes, "scale")? {
        return Ok(end);
    }
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
    watch::warn_if_stopped(context, &job);
    if args.detach || answer.eval_id.is_empty() {
        context.printer.out("Job scale successful")?;
        if !answer.eval_id.is_empty() {
            context
                .printer
                .out(&format!("Evaluation ID: {}", answer.eval_id))?;
        }
        if job.periodic || job.parameterized {
            let launch = if job.periodic { "launch" } else { "dispatch" };
            context
                .printer
                .out(&format!("The count applies from the next {launch}."))?;
        }
        return Ok(Exit::Success);
    }
    watch::job(
        context,
        (&job.namespace, &job.id),
        answer.eval_id,
        args.verbose,
    )
    .await
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
        return context.finish(&pretty(&json::scaling::events(&status)));
    }
    let table = render::children::scaling_events(&status, &context.style(args.verbose));
    context.finish(&match table {
        Some(table) => table.render(),
        None => "No events found".to_owned(),
    })
}

/// Parses a count. `+2` is refused, because it might mean two more.
fn read_count(text: &str) -> Result<u32, Error> {
    let is_digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if !is_digits {
        return Err(Error::text(format!(
            "{text:?} is not a valid count: expected a whole number, 0 or more, for example 3"
        )));
    }
    let count = text.parse().ok();
    let count = count.filter(|count: &u32| u64::from(*count) <= jobspec::MAX_TOTAL_COUNT);
    count.ok_or_else(|| {
        Error::text(format!(
            "{text} exceeds the maximum count of a job, {}",
            jobspec::MAX_TOTAL_COUNT
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_digits_up_to_the_maximum() {
        assert_eq!(read_count("0").unwrap(), 0);
        assert_eq!(read_count("50000").unwrap(), 50_000);
        for text in ["+2", "-1", "", "two", "1.5", "2 "] {
            let message = read_count(text).unwrap_err().to_string();
            assert!(message.contains("is not a valid count"), "{message}");
        }
        for text in ["50001", "99999999999"] {
            let message = read_count(text).unwrap_err().to_string();
            assert!(
                message.contains("exceeds the maximum count of a job, 50000"),
                "{message}"
            );
        }
    }
}
