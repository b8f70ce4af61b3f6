//! One hollow node: the allocations that it runs, and the reports that it owes.
//!
//! Pure; times are milliseconds since the start of the run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashSet};
use std::sync::Arc;

use super::script::Script;

#[cfg(test)]
mod tests;

/// Milliseconds since the start of the run.
pub(crate) type Millis = u64;

/// A name of an allocation: a group, numbered by the fleet, and the index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) group: u32,
    pub(crate) index: u32,
}

/// The servers' record of the allocation's state on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Live,
    Ended,
    Lost,
}

/// An assignment, as far as a hollow node reads it.
#[derive(Clone, Debug)]
pub(crate) struct Assigned {
    pub(crate) id: u128,
    pub(crate) slot: Slot,
    /// Index of the last change of the desired state.
    pub(crate) index: u64,
    /// The servers want it to run.
    pub(crate) is_wanted: bool,
    pub(crate) recorded: Recorded,
    pub(crate) is_canary: bool,
    pub(crate) deployment: Option<u128>,
    pub(crate) report_number: u64,
    pub(crate) script: Arc<Script>,
}

/// Deviations of all tasks of a fleet from their scripts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Behaviour {
    /// Added to every start.
    pub(crate) start_delay: Millis,
    /// Share of the allocations that fail, 0 to 1.
    pub(crate) failure_rate: f64,
    /// Time from the start to a failure.
    pub(crate) fails_after: Millis,
}

impl Behaviour {
    /// Decided by the id alone: a repeated run of an allocation fails again.
    fn fails(self, id: u128) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "the low bits are random")]
        let draw = f64::from(id as u32) / f64::from(u32::MAX);
        draw < self.failure_rate
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Running,
    Stopping,
    Ended { exit_code: i32 },
}

#[derive(Debug)]
struct Entry {
    slot: Slot,
    index: u64,
    phase: Phase,
    /// Time of the next change of `phase`.
    due: Option<Millis>,
    healthy_at: Option<Millis>,
    started_at: Millis,
    ended_at: Millis,
    is_canary: bool,
    deployment: Option<u128>,
    /// Number of the last report.
    number: u64,
    script: Arc<Script>,
}

impl Entry {
    fn is_physical(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Stopping)
    }
}

/// The state to report of one allocation.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) id: u128,
    pub(crate) phase: Phase,
    pub(crate) started_at: Millis,
    pub(crate) ended_at: Millis,
    /// The deployment that counts the allocation as healthy.
    pub(crate) healthy_in: Option<u128>,
    pub(crate) number: u64,
    pub(crate) script: Arc<Script>,
}

/// News for the registry of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A new allocation to run.
    Assigned { id: u128, slot: Slot },
    Started {
        id: u128,
        slot: Slot,
        is_canary: bool,
    },
    /// The tasks do not run any more.
    Ended { id: u128, slot: Slot },
    /// The servers call it lost while its tasks run here.
    CalledLost { id: u128, slot: Slot },
}

/// One node.
#[derive(Debug, Default)]
pub(crate) struct Node {
    entries: BTreeMap<u128, Entry>,
    due_changes: BinaryHeap<Reverse<(Millis, u128)>>,
    /// Allocations with news for the servers.
    unreported: BTreeSet<u128>,
    revision: u64,
}

impl Node {
    /// The highest revision acted on.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Notes the revision of an update; `false`: the update is older than what is known.
    pub(crate) fn advance(&mut self, revision: u64) -> bool {
        let is_news = revision >= self.revision;
        self.revision = self.revision.max(revision);
        is_news
    }

    /// Applies one assignment.
    pub(crate) fn assign(
        &mut self,
        new: Assigned,
        behaviour: Behaviour,
        now: Millis,
    ) -> Vec<Event> {
        let Some(known) = self.entries.get_mut(&new.id) else {
            return self.add(new, behaviour, now);
        };
        known.number = known.number.max(new.report_number);
        let mut events = Vec::new();
        if new.recorded == Recorded::Lost && known.is_physical() {
            let (id, slot) = (new.id, known.slot);
            events.push(Event::CalledLost { id, slot });
        }
        if new.index <= known.index {
            return events;
        }
        known.index = new.index;
        if known.deployment != new.deployment {
            known.deployment = new.deployment;
            if known.phase == Phase::Running && new.deployment.is_some() {
                let healthy_at = now + millis(new.script.healthy_after);
                known.healthy_at = Some(healthy_at);
                self.due_changes.push(Reverse((healthy_at, new.id)));
            }
        }
        let is_live = matches!(known.phase, Phase::Starting | Phase::Running);
        if !new.is_wanted && is_live {
            let due = match known.phase {
                Phase::Running => now + millis(known.script.kill_after),
                _ => now,
            };
            known.phase = match known.phase {
                Phase::Running => Phase::Stopping,
                _ => Phase::Ended { exit_code: 0 },
            };
            if known.phase == Phase::Stopping {
                known.due = Some(due);
                self.due_changes.push(Reverse((due, new.id)));
            } else {
                known.due = None;
                known.ended_at = now;
                self.unreported.insert(new.id);
            }
        }
        events
    }

    fn add(&mut self, new: Assigned, behaviour: Behaviour, now: Millis) -> Vec<Event> {
        if new.recorded != Recorded::Live {
            return Vec::new();
        }
        let (id, slot) = (new.id, new.slot);
        let mut entry = Entry {
            slot,
            index: new.index,
            phase: Phase::Starting,
            due: None,
            healthy_at: None,
            started_at: 0,
            ended_at: 0,
            is_canary: new.is_canary,
            deployment: new.deployment,
            number: new.report_number,
            script: new.script,
        };
        let mut events = Vec::new();
        if new.is_wanted {
            let due = now + behaviour.start_delay + millis(entry.script.start_for);
            entry.due = Some(due);
            self.due_changes.push(Reverse((due, id)));
            events.push(Event::Assigned { id, slot });
        } else {
            entry.phase = Phase::Ended { exit_code: 0 };
            entry.ended_at = now;
            self.unreported.insert(id);
        }
        self.entries.insert(id, entry);
        events
    }

    /// Forgets an allocation that the servers have collected.
    pub(crate) fn remove(&mut self, id: u128) -> Option<Event> {
        self.unreported.remove(&id);
        let entry = self.entries.remove(&id)?;
        let slot = entry.slot;
        entry.is_physical().then_some(Event::Ended { id, slot })
    }

    /// Forgets every allocation that a full list lacks.
    pub(crate) fn keep_only(&mut self, listed: &HashSet<u128>) -> Vec<Event> {
        let gone = self.entries.keys().filter(|id| !listed.contains(id));
        let gone: Vec<u128> = gone.copied().collect();
        gone.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Makes the changes that are due.
    pub(crate) fn tick(&mut self, behaviour: Behaviour, now: Millis) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(Reverse((at, id))) = self.due_changes.peek().copied() {
            if at > now {
                break;
            }
            self.due_changes.pop();
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            if entry.healthy_at == Some(at) && entry.phase == Phase::Running {
                self.unreported.insert(id);
            }
            if entry.due != Some(at) {
                continue;
            }
            entry.due = None;
            let slot = entry.slot;
            match entry.phase {
                Phase::Starting => {
                    entry.phase = Phase::Running;
                    entry.started_at = now;
                    let ends = if behaviour.fails(id) {
                        Some(behaviour.fails_after)
                    } else {
                        entry.script.run_for.map(millis)
                    };
                    if let Some(after) = ends {
                        entry.due = Some(now + after);
                        self.due_changes.push(Reverse((now + after, id)));
                    }
                    if entry.deployment.is_some() {
                        let healthy_at = now + millis(entry.script.healthy_after);
                        entry.healthy_at = Some(healthy_at);
                        self.due_changes.push(Reverse((healthy_at, id)));
                    }
                    let is_canary = entry.is_canary;
                    events.push(Event::Started {
                        id,
                        slot,
                        is_canary,
                    });
                }
                Phase::Running | Phase::Stopping => {
                    let fails = entry.phase == Phase::Running && behaviour.fails(id);
                    let exit_code = match entry.phase {
                        Phase::Running if fails => 1,
                        Phase::Running => entry.script.exit_code,
                        _ => 0,
                    };
                    entry.phase = Phase::Ended { exit_code };
                    entry.ended_at = now;
                    events.push(Event::Ended { id, slot });
                }
                Phase::Ended { .. } => continue,
            }
            self.unreported.insert(id);
        }
        events
    }

    /// Returns the time of the next change.
    pub(crate) fn next_due(&self) -> Option<Millis> {
        self.due_changes.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn has_reports(&self) -> bool {
        !self.unreported.is_empty()
    }

    /// Takes up to `limit` reports, each with a new number.
    pub(crate) fn take_reports(&mut self, limit: usize, now: Millis) -> Vec<Report> {
        let ids: Vec<u128> = self.unreported.iter().take(limit).copied().collect();
        let mut reports = Vec::with_capacity(ids.len());
        for id in ids {
            self.unreported.remove(&id);
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            entry.number += 1;
            let is_healthy = entry.healthy_at.is_some_and(|at| at <= now);
            reports.push(Report {
                id,
                phase: entry.phase,
                started_at: entry.started_at,
                ended_at: entry.ended_at,
                healthy_in: entry.deployment.filter(|_| is_healthy),
                number: entry.number,
                script: Arc::clone(&entry.script),
            });
        }
        reports
    }

    /// Reports these allocations again, with numbers above `known` ones.
    pub(crate) fn report_again(&mut self, ids: impl IntoIterator<Item = (u128, u64)>) {
        for (id, known) in ids {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.number = entry.number.max(known);
                self.unreported.insert(id);
            }
        }
    }

    /// The machine ends without a word: nothing runs any more, and nothing is remembered.
    pub(crate) fn die(&mut self) -> Vec<Event> {
        let physical = self.entries.iter().filter(|(_, entry)| entry.is_physical());
        let events = physical.map(|(&id, entry)| Event::Ended {
            id,
            slot: entry.slot,
        });
        let events = events.collect();
        *self = Self::default();
        events
    }
}

fn millis(duration: std::time::Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX / 4)
}
