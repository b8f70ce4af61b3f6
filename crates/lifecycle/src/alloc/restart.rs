//! Requested restarts: the tasks that a request affects, or the reason why it affects none.

use model::RestartScope;

use super::{AllocRunner, Step};
use crate::gates::Stage;
use crate::task::TaskRunner;

/// The reason why a requested restart affects no task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartRefusal {
    #[error("the allocation has ended or is ending, so its tasks cannot be restarted")]
    Ending,
    #[error("the allocation has no task {task:?}: want one of {known}")]
    UnknownTask { task: String, known: String },
    #[error(
        "task {task:?} is not running, so it cannot be restarted; a task that waits for its restart \
         delay starts without a request"
    )]
    NotRunning { task: String },
    #[error("no task of the allocation is running, so there is nothing to restart")]
    NothingRuns,
}

/// The reason why there is no running process of a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProcess {
    #[error("the allocation has no task {task:?}: want one of {known}")]
    UnknownTask { task: String, known: String },
    #[error("task {task:?} has not started yet")]
    NotStarted { task: String },
    #[error("task {task:?} is not running")]
    NotRunning { task: String },
}

impl AllocRunner {
    /// Returns the attempt of a task that runs.
    ///
    /// # Errors
    /// There is none.
    pub fn running_attempt(&self, task: &str) -> Result<u32, NoProcess> {
        let tasks = &self.state.tasks;
        let name = || task.to_owned();
        let Some(runner) = tasks.get(task) else {
            let known: Vec<&str> = tasks.keys().map(String::as_str).collect();
            return Err(NoProcess::UnknownTask {
                task: name(),
                known: known.join(", "),
            });
        };
        match runner.attempt() {
            attempt if runner.can_restart() => Ok(attempt),
            0 => Err(NoProcess::NotStarted { task: name() }),
            _ => Err(NoProcess::NotRunning { task: name() }),
        }
    }

    /// Returns the tasks that [`crate::Event::Restart`] with this scope would affect, ordered by name.
    ///
    /// # Errors
    /// The restart would affect no task.
    pub fn restartable(&self, scope: &RestartScope) -> Result<Vec<String>, RestartRefusal> {
        if self.state.is_ended || !self.accepts_restarts() {
            return Err(RestartRefusal::Ending);
        }
        let tasks = &self.state.tasks;
        let names = |affects: fn(&TaskRunner) -> bool| -> Vec<String> {
            let affected = tasks.iter().filter(|(_, task)| affects(task));
            affected.map(|(name, _)| name.clone()).collect()
        };
        let affected = match scope {
            RestartScope::Task(name) => {
                let Some(task) = tasks.get(name) else {
                    let known: Vec<&str> = tasks.keys().map(String::as_str).collect();
                    return Err(RestartRefusal::UnknownTask {
                        task: name.clone(),
                        known: known.join(", "),
                    });
                };
                if !task.can_restart() {
                    return Err(RestartRefusal::NotRunning { task: name.clone() });
                }
                vec![name.clone()]
            }
            RestartScope::Running => names(TaskRunner::can_restart),
            RestartScope::All => names(|task| task.can_restart() || task.is_dead()),
        };
        if affected.is_empty() {
            return Err(RestartRefusal::NothingRuns);
        }
        Ok(affected)
    }

    pub(super) fn restart(&mut self, step: &mut Step<'_>, scope: &RestartScope, reason: &str) {
        if !self.accepts_restarts() {
            return;
        }
        match scope {
            RestartScope::Task(name) => {
                self.with_task(step, name, |runner, cx| runner.restart(cx, reason));
            }
            RestartScope::Running => self.each_task(step, |runner, cx| runner.restart(cx, reason)),
            RestartScope::All => {
                self.each_task(step, |runner, cx| {
                    runner.restart(cx, reason);
                    runner.revive(cx.now, reason);
                });
                self.state.stage = Stage::Prestart;
            }
        }
    }

    fn accepts_restarts(&self) -> bool {
        self.state.kill.is_none() && self.state.stage != Stage::Poststop
    }
}
