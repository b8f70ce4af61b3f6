//! Kill of an allocation: its reason, and the order of its tasks.
//!
//! The order is derived from the tasks' states at every step, not stored, so it is right after any
//! restart of the agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::spec::{Role, TaskSpec};
use crate::task::TaskRunner;
use crate::time::Uptime;

/// A kill in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AllocKill {
    pub(crate) reason: KillReason,
    /// End of the group's shutdown delay; `None`: it is over.
    pub(crate) delay_until: Option<Uptime>,
    pub(crate) skip_delays: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KillReason {
    /// Requested by a server, or at the end of an agent in dev mode.
    Stopped,
    SiblingFailed,
    LeaderDead,
    MainTasksDead,
    SetupFailed,
    /// Kills the poststop tasks as well.
    RanTooLong,
    NoContact,
}

/// Returns the names of the tasks to kill now: the leader before all others, sidecars after them.
///
/// Poststop tasks are not among them: they run when all others are dead.
pub(crate) fn next_to_kill(
    specs: &BTreeMap<String, TaskSpec>,
    tasks: &BTreeMap<String, TaskRunner>,
) -> Vec<String> {
    let alive: Vec<(&String, &TaskSpec)> = specs
        .iter()
        .filter(|(name, spec)| {
            spec.role != Role::Poststop && tasks.get(*name).is_some_and(|task| !task.is_dead())
        })
        .collect();
    let rank = |spec: &TaskSpec| match (spec.leader, spec.role.is_sidecar()) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => 2,
    };
    let first = alive.iter().map(|(_, spec)| rank(spec)).min();
    alive
        .into_iter()
        .filter(|(_, spec)| Some(rank(spec)) == first)
        .map(|(name, _)| name.clone())
        .collect()
}
