//! The allocation and task that a command names: the newest allocation of a job, the only task of an allocation.

use proto::v1;

use super::status::job_of;
use crate::context::Context;
use crate::error::Error;
use crate::{render, resolve};

/// Returns the newest running allocation of a job, or the newest if none runs.
pub(crate) async fn of_job(
    context: &Context,
    job: &str,
    group: Option<&str>,
) -> Result<v1::Allocation, Error> {
    let connection = &context.connection;
    let style = context.style_err(false);
    let job = resolve::job(connection, job, &style).await?;
    let mut allocs = connection
        .job_allocations(&job.namespace, &job.id, false)
        .await?;
    if let Some(group) = group {
        allocs.retain(|alloc| alloc.task_group == group);
    }
    let newest = allocs
        .into_iter()
        .max_by_key(|alloc| (alloc.client_status == "running", alloc.create_index));
    let Some(alloc) = newest else {
        let of_group = group
            .map(|group| format!(" of group {group:?}"))
            .unwrap_or_default();
        let says = if job.parameterized || job.periodic {
            "lists its children, which have the allocations: kafila logs -job CHILD"
        } else {
            "says why"
        };
        return Err(Error::text(format!(
            "No allocations{of_group} placed for job {:?}\n'kafila job status {}' {says}.",
            job.id, job.id
        )));
    };
    context.printer.err(&format!(
        "Allocation {}",
        render::alloc::one_line(&alloc, &style)
    ));
    Ok(alloc)
}

/// Returns the task that is named, or the allocation's only one.
pub(super) async fn choose_task(
    context: &Context,
    alloc: &v1::Allocation,
    named: Option<&str>,
    of_job: bool,
    example: &str,
) -> Result<String, Error> {
    let job = job_of(&context.connection, alloc).await?;
    let groups = job.iter().flat_map(|job| &job.task_groups);
    let group = groups
        .clone()
        .find(|group| group.name() == alloc.task_group);
    let names = render::task::names(alloc, group);
    let short = context.style_err(false).id(&alloc.id);
    let example_of = |task: &str| example.replace("ID", &short).replace("TASK", task);
    match (named, &names[..]) {
        (Some(named), names) if names.is_empty() || names.iter().any(|name| name == named) => {
            Ok(named.to_owned())
        }
        (Some(named), names) => {
            let hint = if of_job && resolve::looks_like_id(named) {
                "\nIf it is the id of an allocation: leave out -job, which chooses one itself."
            } else {
                ""
            };
            Err(Error::text(format!(
                "No task {named:?} in allocation {short:?}\nIts tasks are: {}.{hint}",
                names.join(", ")
            )))
        }
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(Error::text(format!(
            "Allocation {short:?} has no task states yet: name the task, as in {}",
            example_of("TASK")
        ))),
        (None, names) => Err(Error::text(format!(
            "Allocation {short:?} is running the following tasks:\n  * {}\n\
             Please specify the task, as in {}",
            names.join("\n  * "),
            example_of(&names[0])
        ))),
    }
}
