//! Checks after each round, and at the end.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::{RECOVERY_TIMEOUT, Run};
use crate::api::eventually;
use crate::kill_rounds::jobs::{JOBS, Job, STARTS, TWICE};
use crate::kill_rounds::machine::{self, TaskProcess};
use crate::kill_rounds::schedule::{Round, Victim};
use crate::kill_rounds::traces::{left_by_engine, traces};

/// Dangling containers are removed at a fingerprint after their grace.
const END_TIMEOUT: Duration = Duration::from_secs(120);

impl Run {
    /// Waits until exactly the wanted tasks run, each once. Returns those of steady jobs.
    pub(super) async fn until_all_run(&mut self) -> Result<Vec<TaskProcess>> {
        let found = eventually(RECOVERY_TIMEOUT, || async {
            let mut steady = Vec::new();
            for job in &JOBS {
                let found = self.running(job).await?;
                if job.is_steady {
                    steady.extend(found);
                }
            }
            Ok(steady)
        });
        let found = found.await?;
        self.check_twice()?;
        Ok(found)
    }

    /// Returns the processes of a job if these are the wanted ones.
    async fn running(&self, job: &Job) -> Result<Vec<TaskProcess>> {
        let allocations = self.api.allocations(job.name).await?;
        let live: Vec<&str> = allocations
            .iter()
            .filter(|it| it.desired_status == "run" && !is_ended(&it.client_status))
            .map(|it| it.id.as_str())
            .collect();
        ensure!(
            live.len() == job.count,
            "{}: {} allocations",
            job.name,
            live.len()
        );
        let mut found = machine::task_processes(&machine::processes());
        found.retain(|it| it.job == job.name);
        let wanted = job.processes();
        ensure!(
            found.len() == wanted,
            "{} of {wanted} tasks run: {found:?}",
            found.len()
        );
        for task in &found {
            ensure!(
                live.contains(&task.alloc_id.as_str()),
                "not wanted: {task:?}"
            );
        }
        let distinct: BTreeSet<_> = found.iter().map(|it| (&it.alloc_id, &it.task)).collect();
        ensure!(distinct.len() == wanted, "a task runs twice: {found:?}");
        Ok(found)
    }

    /// Checks that no task found the lock of an earlier process of its own.
    fn check_twice(&mut self) -> Result<()> {
        let twice = fs::read_to_string(self.locks.join(TWICE)).unwrap_or_default();
        ensure!(
            twice.is_empty(),
            "tasks ran twice at the same time:\n{twice}"
        );
        Ok(())
    }

    /// The end of an agent or of a supervisor ends no task.
    pub(super) fn check_kept(
        &mut self,
        round: &Round,
        replaced: Option<&Job>,
        before: &[TaskProcess],
        after: &[TaskProcess],
    ) -> Result<()> {
        let is_harmless = |victim: &Victim| matches!(victim, Victim::Agent | Victim::Supervisor);
        let is_harmless = round.victims.iter().all(is_harmless);
        for task in before {
            if after.contains(task) {
                self.report.kept += 1;
                continue;
            }
            self.report.restarted += 1;
            let is_replaced = replaced.is_some_and(|job| job.name == task.job);
            ensure!(
                is_replaced || !is_harmless,
                "the end of {:?} ended {task:?}",
                round.victims
            );
        }
        Ok(())
    }

    /// Stops all jobs, and checks that nothing is left of them.
    pub(super) async fn end(&mut self) -> Result<()> {
        let starts = fs::read_to_string(self.locks.join(STARTS))?;
        self.report.starts = starts.lines().count();
        for job in &JOBS {
            self.stop(job).await?;
        }
        eventually(END_TIMEOUT, || async {
            let mut left = traces(&self.places)?;
            let containers =
                self.engine
                    .docker(&["ps", "--all", "--format", "{{.Names}} {{.Status}}"])?;
            left.extend(containers.lines().map(|line| format!("container {line}")));
            ensure!(left.is_empty(), "left behind: {left:#?}");
            Ok(())
        })
        .await?;
        self.report.left_by_engine = left_by_engine(&self.places);
        self.check_twice()
    }
}

fn is_ended(status: &str) -> bool {
    let ended = ["complete", "failed", "lost"];
    ended.contains(&status)
}
