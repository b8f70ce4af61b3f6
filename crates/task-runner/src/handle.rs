//! Handle to an allocation's runner: commands and progress.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lifecycle::{Assignment, NoProcess, RestartRefusal};
use model::{RestartScope, Timestamp};
use task_drivers::{Driver, DriverError, TaskId};
use tokio::sync::{mpsc, oneshot, watch};

use crate::check_view::CheckView;

/// A command to a runner.
#[derive(Debug)]
pub enum Command {
    /// The desired side of the allocation has changed.
    Update(Assignment),
    /// A server's list was applied for the first time since the agent started.
    ServersContacted,
    /// The last answer of a server is `age` old.
    Contact { age: Duration },
    /// The servers may have lost its last report.
    ReportAgain,
    /// Restart tasks in place; the answer names them.
    Restart {
        scope: RestartScope,
        answer: oneshot::Sender<Result<Vec<String>, RestartRefusal>>,
    },
    /// Answers with the states of the service checks.
    Checks {
        answer: oneshot::Sender<Vec<CheckView>>,
    },
    /// Answers with the running attempt of a task.
    FindTask {
        task: String,
        answer: oneshot::Sender<Result<RunningTask, NoProcess>>,
    },
    /// Sends a signal to one task, or without a name to all that run.
    Signal {
        task: Option<String>,
        signal: String,
        answer: SignalAnswer,
    },
    /// Stop the allocation and remove its files and records.
    Collect,
}

/// The reason why a signal was not sent, or not to every task.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    #[error(transparent)]
    Task(#[from] NoProcess),
    #[error("no task of the allocation is running, so there is none to signal")]
    NothingRuns,
    #[error("driver {driver}: {}", service_kit::run::chain(.source))]
    Driver {
        driver: &'static str,
        #[source]
        source: DriverError,
    },
}

/// Answer to a request: the names of the tasks that were sent the signal.
pub type SignalAnswer = oneshot::Sender<Result<Vec<String>, SignalError>>;

/// A running task.
#[derive(Clone)]
pub struct RunningTask {
    pub id: TaskId,
    pub driver: Arc<dyn Driver>,
}

impl fmt::Debug for RunningTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.id, self.driver.name())
    }
}

/// Progress of a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    Live,
    /// No task of it runs any more, since this time.
    Ended(Timestamp),
    /// Its files and records are removed.
    Removed,
}

/// Handle to a runner. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub progress: watch::Receiver<Progress>,
}

impl Handle {
    /// Sends a command; ignored by a runner that is gone.
    pub async fn send(&self, command: Command) {
        let _ = self.commands.send(command).await;
    }

    /// Returns the running attempt of a task; `None`: the runner is gone.
    pub async fn find_task(&self, task: &str) -> Option<Result<RunningTask, NoProcess>> {
        let (answer, answered) = oneshot::channel();
        let task = task.to_owned();
        self.send(Command::FindTask { task, answer }).await;
        answered.await.ok()
    }

    /// Sends a signal to one task, or without a name to all that run, and returns their names; `None`: the runner
    /// is gone.
    ///
    /// # Errors
    /// No task runs, or a driver refuses.
    pub async fn signal(
        &self,
        task: Option<String>,
        signal: String,
    ) -> Option<Result<Vec<String>, SignalError>> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Signal {
            task,
            signal,
            answer,
        })
        .await;
        answered.await.ok()
    }

    pub fn has_ended(&self) -> bool {
        *self.progress.borrow() != Progress::Live
    }

    /// Returns when the last task ended; `None`: it runs, or its files are removed.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match *self.progress.borrow() {
            Progress::Ended(at) => Some(at),
            Progress::Live | Progress::Removed => None,
        }
    }

    /// Returns once no task of it runs any more.
    pub async fn ended(mut self) {
        // A runner that is gone runs no task either.
        let _ = self
            .progress
            .wait_for(|progress| *progress != Progress::Live)
            .await;
    }
}
