//! What the supervisor's threads know in common.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::ExitResult;

use crate::process_id::ProcessId;

/// How many messages for the user are kept for an agent that is away: a task shows ten events.
const MESSAGES_KEPT: usize = 10;

/// How far the task has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    StartFailed {
        message: String,
        recoverable: bool,
    },
    Running,
    /// The task's process is gone; its children may not be, and its logs are not complete.
    Ending,
    /// Everything is gone, written down and may be told.
    Exited(ExitResult),
}

impl Phase {
    /// Tells whether nothing of the task runs.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::StartFailed { .. } | Self::Exited(_))
    }
}

#[derive(Debug)]
pub(super) struct Facts {
    pub(super) phase: Phase,
    /// The task's process, from its start until its end has been seen.
    pub(super) task: Option<ProcessId>,
    /// Its number, kept for those who ask later; 0: there was none.
    pub(super) pid: i32,
    pub(super) messages: VecDeque<String>,
    /// How many messages there ever were, so that a watcher knows which it has sent.
    pub(super) messages_ever: u64,
    pub(super) log_dropped_bytes: u64,
    pub(super) is_forgotten: bool,
}

/// The facts, and a bell that rings with every change of them.
#[derive(Debug)]
pub(super) struct Shared {
    facts: Mutex<Facts>,
    bell: Condvar,
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
            bell: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Facts> {
        // A thread that panicked has left facts that were true a moment ago.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the facts and lets everybody look.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Facts) -> R) -> R {
        let result = change(&mut self.lock());
        self.bell.notify_all();
        result
    }

    /// Keeps a message for the user.
    pub(super) fn tell(&self, text: String) {
        self.change(|facts| {
            facts.messages.push_back(text);
            facts.messages_ever += 1;
            if facts.messages.len() > MESSAGES_KEPT {
                facts.messages.pop_front();
            }
        });
    }

    /// Waits until `holds`, at most `limit`; returns the facts either way.
    pub(super) fn wait_for(
        &self,
        limit: Duration,
        mut holds: impl FnMut(&Facts) -> bool,
    ) -> MutexGuard<'_, Facts> {
        let (facts, _) = self
            .bell
            .wait_timeout_while(self.lock(), limit, |facts| !holds(facts))
            .unwrap_or_else(PoisonError::into_inner);
        facts
    }
}
