//! The rounds of a run: jobs, kills, and what has to be so after each.

mod checks;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::{Instant, sleep};

use super::engine::Engine;
use super::jobs::{self, JOBS, Job};
use super::machine::{self, TaskProcess};
use super::report::Report;
use super::schedule::{Round, Victim, rounds};
use super::traces::Places;
use crate::api::Api;
use crate::suite::Suite;

/// The node's process in the suite.
pub const AGENT: &str = "client-node-0";
/// Everything has to run again so long after a kill: a failed allocation is replaced after 5 s, an
/// engine takes seconds to start, and the machine may be busy.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(90);

/// A run in progress.
pub struct Run {
    pub suite: Suite,
    pub api: Api,
    pub engine: Engine,
    /// Directory of the locks of tasks.
    pub locks: PathBuf,
    pub places: Places,
    pub report: Report,
}

impl Run {
    /// Plays rounds of a seed, then stops all jobs.
    /// `only`: kills these kinds alone; empty: all.
    ///
    /// # Errors
    /// What a check found, and the round.
    pub async fn play(&mut self, seed: u64, count: usize, only: &[Victim]) -> Result<()> {
        for job in &JOBS {
            self.register(job).await?;
        }
        let began = Instant::now();
        let mut before = self.until_all_run().await.context("at the start")?;
        println!("{} tasks run after {:?}", before.len(), began.elapsed());
        let all = rounds(seed, count, only);
        for (number, round) in all.iter().enumerate() {
            let played = self.play_round(round, &before).await;
            before = played.with_context(|| format!("round {number}: {round:?}"))?;
            if (number + 1) % 10 == 0 {
                println!("{} rounds after {:?}", number + 1, began.elapsed());
            }
        }
        self.end().await
    }

    /// Plays a round, and returns the tasks that run after it.
    async fn play_round(
        &mut self,
        round: &Round,
        before: &[TaskProcess],
    ) -> Result<Vec<TaskProcess>> {
        sleep(round.wait).await;
        let replaced = round.replaces_job.then(|| &JOBS[round.number % JOBS.len()]);
        if let Some(job) = replaced {
            self.stop(job).await?;
            self.report.replaced_jobs += 1;
        }
        let killed = Instant::now();
        for victim in &round.victims {
            self.kill(*victim, round.number);
        }
        sleep(round.away).await;
        if !self.engine.is_started() {
            self.engine.start_again()?;
        }
        if self.suite.process(AGENT).is_none() {
            self.suite.start_process(AGENT)?;
        }
        if let Some(job) = replaced {
            self.register(job).await?;
        }
        let after = self.until_all_run().await?;
        self.report.record(round, killed.elapsed());
        self.check_kept(round, replaced, before, &after)?;
        Ok(after)
    }

    fn kill(&mut self, victim: Victim, number: usize) {
        let all = machine::processes();
        let one_of = |pids: Vec<i32>| {
            let chosen = pids.get(number.checked_rem(pids.len())?);
            chosen.copied()
        };
        let pid = match victim {
            Victim::Agent => {
                self.suite.kill(AGENT);
                self.report.count_kill(victim);
                return;
            }
            Victim::Engine => {
                self.engine.kill();
                self.report.count_kill(victim);
                return;
            }
            Victim::Supervisor => {
                one_of(machine::supervisors(&all).iter().map(|it| it.pid).collect())
            }
            Victim::Shim => one_of(machine::shims(&all).iter().map(|it| it.pid).collect()),
            Victim::Task => {
                let tasks = machine::task_processes(&all);
                one_of(tasks.iter().map(|it| it.pid).collect())
            }
            Victim::Containerd => machine::containerd(&all).map(|it| it.pid),
        };
        if let Some(pid) = pid {
            machine::kill_now(pid);
            self.report.count_kill(victim);
        }
    }

    async fn register(&self, job: &Job) -> Result<()> {
        self.suite.run_job(&jobs::file(job, &self.locks)).await
    }

    async fn stop(&self, job: &Job) -> Result<()> {
        self.api.stop_surely(job.name, true, RECOVERY_TIMEOUT).await
    }
}
