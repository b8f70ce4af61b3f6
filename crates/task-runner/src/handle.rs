//! Handle to an allocation's runner: commands and progress.

use std::time::Duration;

use lifecycle::{Assignment, RestartRefusal, RestartScope};
use model::Timestamp;
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
    /// Stop the allocation and remove its files and records.
    Collect,
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
