//! `kafila job restart`: allocations in batches, each restarted in place or replaced.
//!
//! [`progress`] decides when a restart is done.

mod progress;

use std::io::IsTerminal as _;
use std::time::Duration;

use proto::v1;
use tokio::time::{Instant, sleep};

use self::progress::{Progress, Started, of_replacement, of_restart};
use super::watch;
use crate::args::job::restart::{BatchWait, OnError, Restart};
use crate::commands::confirm::{self, Answer};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::resolve;

/// Poll interval while the tasks of a batch start: a start takes seconds.
const POLL: Duration = Duration::from_millis(500);
/// Longest wait for one batch: a kill timeout, an image pull, and the wait for capacity.
const BATCH_LIMIT: Duration = Duration::from_secs(600);

pub(crate) async fn run(context: &Context, args: &Restart) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let job = resolve::job(&context.connection, &args.id, &style).await?;
    if args.reschedule && job.r#type != "service" {
        return Err(Error::text(format!(
            "Jobs of type {:?} are not allowed to be rescheduled.\nLeave out -reschedule to restart \
             tasks in place.",
            job.r#type
        )));
    }
    if args.batch_wait == BatchWait::Ask && !std::io::stdin().is_terminal() {
        return Err(Error::text(
            "-batch-wait=ask needs a terminal; use a duration, such as -batch-wait=10s",
        ));
    }
    let allocs = choose(context, args, &job).await?;
    if allocs.is_empty() {
        return context.finish(&format!("Job {:?} has nothing to restart", job.id));
    }
    if let Some(end) = confirm::job(context, (&job, &args.id), args.yes, "restart")? {
        return Ok(end);
    }
    let restarting = Restarting {
        context,
        args,
        job: &job,
    };
    let detached = "The other allocations are not restarted";
    watch::interruptible(context, restarting.all(&allocs), detached).await
}

/// Returns the running allocations that the flags choose.
async fn choose(
    context: &Context,
    args: &Restart,
    job: &v1::JobStub,
) -> Result<Vec<v1::Allocation>, Error> {
    let found = context
        .connection
        .job_allocations(&job.namespace, &job.id, false);
    let mut allocs = found.await?;
    allocs.retain(|alloc| alloc.client_status == "running" && alloc.desired_status == "run");
    if !args.groups.is_empty() {
        for group in &args.groups {
            if !allocs.iter().any(|alloc| alloc.task_group == *group) {
                return Err(Error::text(format!(
                    "No running allocation of group {group:?} in job {:?}",
                    job.id
                )));
            }
        }
        allocs.retain(|alloc| args.groups.contains(&alloc.task_group));
    }
    for task in &args.tasks {
        let has_task = |alloc: &v1::Allocation| alloc.task_states.contains_key(task);
        if !allocs.iter().any(has_task) {
            return Err(Error::text(format!(
                "No running allocation with a task {task:?} in job {:?}",
                job.id
            )));
        }
    }
    if !args.tasks.is_empty() {
        let has_any = |alloc: &v1::Allocation| {
            let mut tasks = args.tasks.iter();
            tasks.any(|task| alloc.task_states.contains_key(task))
        };
        allocs.retain(has_any);
    }
    Ok(allocs)
}

struct Restarting<'a> {
    context: &'a Context,
    args: &'a Restart,
    job: &'a v1::JobStub,
}

impl Restarting<'_> {
    async fn all(&self, allocs: &[v1::Allocation]) -> Result<Exit, Error> {
        let printer = &self.context.printer;
        let size = self.args.batch_size.of(allocs.len());
        let mut failed = 0;
        let mut done = 0;
        for (number, batch) in allocs.chunks(size).enumerate() {
            if number > 0 && !self.pause(allocs.len() - done).await? {
                return self.given_up(allocs.len() - done);
            }
            let failures = self.batch(batch).await?;
            done += batch.len();
            failed += failures.len();
            for failure in &failures {
                printer.err(failure);
            }
            if !failures.is_empty() && done < allocs.len() && !self.goes_on()? {
                return self.given_up(allocs.len() - done);
            }
        }
        if failed > 0 {
            let count = allocs.len();
            printer.err(&format!("{failed} of {count} allocations did not restart"));
            return Ok(Exit::Failure);
        }
        self.context.finish("Job restarted successfully!")
    }

    fn given_up(&self, left: usize) -> Result<Exit, Error> {
        let line = format!("Job restart ended; {left} allocations were not restarted");
        self.context.printer.err(&line);
        Ok(Exit::Failure)
    }

    /// Waits before a further batch; false: the user ended it.
    async fn pause(&self, left: usize) -> Result<bool, Error> {
        match self.args.batch_wait {
            BatchWait::For(duration) => sleep(duration).await,
            BatchWait::Ask if self.args.yes => {}
            BatchWait::Ask => {
                let question = format!("Restart the next batch? {left} allocations are left.");
                let unanswered = "Error restarting job: the next batch needs a confirmation";
                return Ok(confirm::ask(self.context, &question, unanswered)? == Answer::Yes);
            }
        }
        Ok(true)
    }

    /// Tells whether further batches follow a failed one.
    fn goes_on(&self) -> Result<bool, Error> {
        let may_ask = self.args.on_error == OnError::Ask && std::io::stdin().is_terminal();
        if !may_ask {
            return Ok(false);
        }
        let unanswered = "Error restarting job: a restart failed";
        let answer = confirm::ask(self.context, "Continue with the next batch?", unanswered)?;
        Ok(answer == Answer::Yes)
    }

    /// Restarts a batch and waits until it runs again; returns the failures.
    async fn batch(&self, batch: &[v1::Allocation]) -> Result<Vec<String>, Error> {
        let style = self.context.style(self.args.verbose);
        let mut failures = Vec::new();
        let mut waiting = Vec::new();
        let requests = batch.iter().map(|alloc| self.request(alloc));
        let answers = futures::future::join_all(requests).await;
        for (alloc, answer) in batch.iter().zip(answers) {
            match answer {
                Ok(started) => waiting.push(started),
                Err(error) => failures.push(error.to_string()),
            }
            let verb = if self.args.reschedule {
                "Stopping"
            } else {
                "Restarting"
            };
            let line = format!("==> {verb} allocation {}", style.id(&alloc.id));
            self.context.printer.out(&line)?;
        }
        let limit = Instant::now() + BATCH_LIMIT;
        while !waiting.is_empty() {
            let now = self.allocations().await?;
            let mut left = Vec::new();
            for started in waiting {
                let id = style.id(&started.alloc_id);
                let progress = if self.args.reschedule {
                    of_replacement(&started, &now)
                } else {
                    of_restart(&started, &now)
                };
                match progress {
                    Progress::Done(what) => {
                        self.context.printer.out(&format!("    {id}: {what}"))?;
                    }
                    Progress::Failed(why) => failures.push(format!("Allocation {id}: {why}")),
                    Progress::Waiting if Instant::now() < limit => left.push(started),
                    Progress::Waiting => failures.push(format!(
                        "Allocation {id}: it does not run again after {} minutes",
                        BATCH_LIMIT.as_secs() / 60
                    )),
                }
            }
            waiting = left;
            if !waiting.is_empty() {
                sleep(POLL).await;
            }
        }
        Ok(failures)
    }

    async fn allocations(&self) -> Result<Vec<v1::Allocation>, Error> {
        let (namespace, id) = (&self.job.namespace, &self.job.id);
        let connection = &self.context.connection;
        // The replacement of an allocation may belong to a later version, never to another job.
        connection.job_allocations(namespace, id, true).await
    }

    async fn request(&self, alloc: &v1::Allocation) -> Result<Started, Error> {
        let connection = &self.context.connection;
        if self.args.reschedule {
            let skips_delay = self.args.no_shutdown_delay;
            connection.stop_allocation(&alloc.id, skips_delay).await?;
            return Ok(Started::new(alloc, Vec::new()));
        }
        let request = |task: &str| v1::RestartAllocationRequest {
            alloc_id: alloc.id.clone(),
            task: task.to_owned(),
            all_tasks: self.args.all_tasks,
        };
        if self.args.tasks.is_empty() {
            let answer = connection.restart_allocation(request("")).await?;
            return Ok(Started::new(alloc, answer.tasks));
        }
        let mut restarted = Vec::new();
        for task in &self.args.tasks {
            if alloc.task_states.contains_key(task) {
                let answer = connection.restart_allocation(request(task)).await?;
                restarted.extend(answer.tasks);
            }
        }
        Ok(Started::new(alloc, restarted))
    }
}
