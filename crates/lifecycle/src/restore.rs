//! Restoration of a node's allocations after a restart of its agent.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{AllocId, Timestamp};

use crate::alloc::{AllocState, Boot};
use crate::assignment::{Assignment, predecessors_first};

/// The allocations of an earlier run of the agent.
#[derive(Clone, Debug, Default)]
pub struct Restoration {
    /// Those that go on, each behind its predecessors.
    pub restored: Vec<(Assignment, AllocState)>,
    /// Those without one of their two records, which are forgotten: servers assign wanted allocations
    /// again, and drivers find running tasks.
    pub incomplete: Vec<AllocId>,
}

/// Decides about the stored records: the assignment and the state of each allocation.
pub fn restoration(
    stored: impl IntoIterator<Item = (AllocId, Option<Assignment>, Option<AllocState>)>,
) -> Restoration {
    let (mut complete, mut incomplete) = (Vec::new(), Vec::new());
    for (alloc_id, assignment, state) in stored {
        match (assignment, state) {
            (Some(assignment), Some(state)) => complete.push((assignment, state)),
            _ => incomplete.push(alloc_id),
        }
    }
    Restoration {
        restored: predecessors_first(complete, |(assignment, _)| &assignment.alloc),
        incomplete,
    }
}

/// Returns the boot of the stored state. `stored_id` is empty before the first run of the agent, and
/// there is no state then.
pub fn boot_of(stored_id: &str, boot_id: &str) -> Boot {
    if stored_id == boot_id {
        Boot::Same
    } else {
        Boot::New
    }
}

/// Returns the age of the last contact with a server, which grows while the agent is down. A node
/// without any contact starts to count now.
pub fn contact_age(last_contact: Timestamp, now: Timestamp) -> Duration {
    if last_contact.is_never() {
        Duration::ZERO
    } else {
        now.since(last_contact)
    }
}

/// Returns the allocations whose networks and directories stay after a full list: those of the node, and
/// their predecessors, whose data may still move.
pub fn kept_allocs<'a>(assignments: impl Iterator<Item = &'a Assignment>) -> BTreeSet<AllocId> {
    assignments
        .flat_map(|assignment| [Some(assignment.alloc.id), assignment.alloc.previous_alloc])
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use model::NodeId;
    use test_kit::builders;

    use super::*;
    use crate::spec::{AllocSpec, Limits};
    use crate::{AllocRunner, Now, Uptime};

    fn id(number: u128) -> AllocId {
        AllocId::from_random(number)
    }

    fn assignment(number: u128, previous: Option<u128>) -> Assignment {
        let job = builders::batch("sum", 1);
        let mut alloc = builders::allocation(number, &job, NodeId::from_random(1));
        alloc.previous_alloc = previous.map(id);
        Assignment {
            alloc: Arc::new(alloc),
            job: Arc::new(job),
            modify_index: 1,
            trace_parent: String::new(),
            volume_paths: BTreeMap::new(),
        }
    }

    #[test]
    fn an_allocation_without_both_records_is_forgotten_and_the_others_follow_their_predecessors() {
        let Assignment { alloc, job, .. } = assignment(1, None);
        let spec = AllocSpec::new(&job, &alloc, Limits::default()).unwrap();
        let now = Now {
            wall: Timestamp(1),
            uptime: Uptime::default(),
        };
        let state = AllocRunner::new(spec, now).state().clone();
        let stored = [
            (id(1), Some(assignment(1, Some(2))), Some(state.clone())),
            (id(2), Some(assignment(2, None)), Some(state.clone())),
            (id(3), Some(assignment(3, None)), None),
            (id(4), None, Some(state)),
            (id(5), None, None),
        ];
        let Restoration {
            restored,
            incomplete,
        } = restoration(stored);
        let restored: Vec<AllocId> = restored.iter().map(|(it, _)| it.alloc.id).collect();
        assert_eq!(restored, [id(2), id(1)]);
        assert_eq!(incomplete, [id(3), id(4), id(5)]);
    }

    #[test]
    fn the_age_of_the_last_contact_grows_while_the_agent_is_down() {
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1_000);
        let never = Timestamp::NEVER;
        for (last_contact, now, age) in [
            (at(10), at(70), 60),
            (at(70), at(10), 0),
            (never, at(70), 0),
        ] {
            let found = contact_age(last_contact, now);
            assert_eq!(found, Duration::from_secs(age), "{last_contact:?} {now:?}");
        }
    }

    #[test]
    fn a_stored_boot_that_is_not_the_current_one_is_over() {
        for (stored, current, boot) in [
            ("b1", "b1", Boot::Same),
            ("b1", "b2", Boot::New),
            ("", "b1", Boot::New),
        ] {
            assert_eq!(boot_of(stored, current), boot, "{stored:?} {current:?}");
        }
    }

    #[test]
    fn files_of_predecessors_stay() {
        let assignments = [assignment(1, Some(2)), assignment(3, None)];
        let kept = kept_allocs(assignments.iter());
        assert_eq!(kept, [1, 2, 3].map(id).into());
    }
}
