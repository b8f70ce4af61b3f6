//! State shared by the supervisor's threads.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::ExitResult;

use crate::process_id::ProcessId;

/// Messages that are kept for a disconnected agent. A task shows ten events.
const MESSAGES_KEPT: usize = 10;

/// Phase of the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    StartFailed {
        message: String,
        recoverable: bool,
    },
    Running,
    /// The task's process is gone; children may remain, and its logs are not complete.
    Ending,
    /// Every process is gone, and the end is recorded.
    Exited(ExitResult),
}

impl Phase {
    /// Returns whether no process of the task runs.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::StartFailed { .. } | Self::Exited(_))
    }
}

#[derive(Debug)]
pub(super) struct Facts {
    pub(super) phase: Phase,
    /// The task's process, from its start until its end has been seen.
    pub(super) task: Option<ProcessId>,
    /// Its pid, kept after its end; 0: there was none.
    pub(super) pid: i32,
    pub(super) messages: VecDeque<String>,
    /// Total number of messages, so that a watcher knows which it has sent.
    pub(super) messages_ever: u64,
    pub(super) log_dropped_bytes: u64,
    pub(super) is_forgotten: bool,
}

/// The facts and a condition variable that signals every change.
#[derive(Debug)]
pub(super) struct Shared {
    facts: Mutex<Facts>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn new() -> Self {
        let facts = Facts {
            phase: Phase::Starting,
            task: None,
            pid: 0,
            messages: VecDeque::new(),
            messages_ever: 0,
            log_dropped_bytes: 0,
            is_forgotten: false,
        };
        Self {
            facts: Mutex::new(facts),
            changed: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Facts> {
        // A panicking thread leaves consistent facts: each change is a single step.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the facts and wakes every waiting thread.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Facts) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Queues a message for the user.
    pub(super) fn push_message(&self, text: String) {
        self.change(|facts| {
            facts.messages.push_back(text);
            facts.messages_ever += 1;
            if facts.messages.len() > MESSAGES_KEPT {
                facts.messages.pop_front();
            }
        });
    }

    /// Waits until `holds`, at most `limit`. Returns the facts in both cases.
    pub(super) fn wait_for(
        &self,
        limit: Duration,
        mut holds: impl FnMut(&Facts) -> bool,
    ) -> MutexGuard<'_, Facts> {
        let (facts, _) = self
            .changed
            .wait_timeout_while(self.lock(), limit, |facts| !holds(facts))
            .unwrap_or_else(PoisonError::into_inner);
        facts
    }
}
