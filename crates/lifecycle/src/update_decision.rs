//! UpdateDecision of the servers' updates: whether a node acts on one, and what it stores and reports first.
//!
//! Revisions count in one store. A node whose servers have another store, or an older copy of the same,
//! starts over from a full list.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    AllocClient, AllocId, Allocation, ClientStatus, DeploymentHealth, DeploymentId, Timestamp,
};

use crate::assignment::{Changes, Known, Update, changes};

/// The facts of a node that decide about an update.
#[derive(Clone, Debug, Default)]
pub struct NodeView {
    pub known: BTreeMap<AllocId, Known>,
    /// The store of the last list; empty: no gateway has named one.
    pub store_id: String,
    /// The highest revision acted on.
    pub seen: u64,
}

/// The decision about an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateDecision {
    /// A change from another store than the node's: the node needs a full list first.
    NeedsList,
    /// The update is older than what the node has acted on: its gateway is behind, and nothing changes.
    Behind {
        seen: u64,
    },
    Accepted(Box<Accepted>),
}

/// An update that the node acts on, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The servers have another store: the node forgets every revision and acknowledgement, because the
    /// numbers mean nothing there.
    pub starts_over: bool,
    pub revision: u64,
    /// The store to record; `None`: the gateway does not name it.
    pub store_id: Option<String>,
    /// The revision is made durable, before the changes. Changes that were not made come again with
    /// the next list, which is not older.
    pub is_durable: bool,
    /// Report numbers that the servers have, of allocations that this node reports.
    pub numbers: BTreeMap<AllocId, u64>,
    pub changes: Changes,
    /// The update was a full list: reports and tasks that wait for one go on.
    pub is_full: bool,
    /// Every allocation of the node is in it: tasks and directories of others are removed.
    pub lists_all: bool,
}

/// Decides about one message of a stream, which is a full list or a change.
pub fn receive(mut node: NodeView, mut update: Update) -> UpdateDecision {
    let names_store = !update.store_id.is_empty();
    let is_other = names_store && update.store_id != node.store_id;
    let starts_over = is_other && !node.store_id.is_empty();
    if starts_over {
        if !update.is_full {
            return UpdateDecision::NeedsList;
        }
        node.seen = 0;
        for known in node.known.values_mut() {
            known.modify_index = 0;
        }
    }
    let revision = update.revision;
    let store_id = names_store.then(|| std::mem::take(&mut update.store_id));
    let is_full = update.is_full;
    let lists_all = update.is_full && !update.has_nameless;
    let mut numbers = std::mem::take(&mut update.numbers);
    let Some(changes) = changes(&node.known, node.seen, update) else {
        return UpdateDecision::Behind { seen: node.seen };
    };
    let added = changes.added.iter().map(|assignment| assignment.alloc.id);
    let invalid = changes.invalid.iter().map(|invalid| invalid.alloc_id);
    let reported: BTreeSet<AllocId> = added.chain(invalid).collect();
    // The node reports no other allocations.
    numbers.retain(|id, _| node.known.contains_key(id) || reported.contains(id));
    UpdateDecision::Accepted(Box::new(Accepted {
        starts_over,
        revision,
        store_id,
        is_durable: is_other || !changes.is_empty(),
        numbers,
        changes,
        is_full,
        lists_all,
    }))
}

/// Returns whether `alloc` has to end on this node before `next` starts: it is replaced by `next`, or
/// makes room for it.
pub fn is_predecessor(alloc: &Allocation, next: &Allocation) -> bool {
    Some(alloc.id) == next.previous_alloc || alloc.preempted_by == Some(next.id)
}

/// Returns the report of an allocation that this node cannot run, so that the servers place it elsewhere.
/// A deployment counts it as unhealthy.
pub fn unrunnable(
    deployment_id: Option<DeploymentId>,
    reason: &str,
    now: Timestamp,
) -> AllocClient {
    let health = |deployment_id| DeploymentHealth {
        healthy: false,
        time: now,
        deployment_id: Some(deployment_id),
    };
    AllocClient {
        status: ClientStatus::Failed,
        description: format!("Unable to add allocation due to error: {reason}"),
        health: deployment_id.map(health),
        modify_time: now,
        ..AllocClient::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::NodeId;
    use test_kit::builders;

    use super::*;
    use crate::assignment::{Assigned, Assignment, InvalidAssignment};

    fn id(number: u128) -> AllocId {
        AllocId::from_random(number)
    }

    fn assignment(number: u128, modify_index: u64) -> Assignment {
        let job = builders::batch("sum", 1);
        Assignment {
            alloc: Arc::new(builders::allocation(number, &job, NodeId::from_random(1))),
            job: Arc::new(job),
            modify_index,
            trace_parent: String::new(),
            volume_paths: BTreeMap::new(),
        }
    }

    fn node(store_id: &str, seen: u64) -> NodeView {
        let known = Known::from(&assignment(1, 5));
        NodeView {
            known: BTreeMap::from([(id(1), known)]),
            store_id: store_id.to_owned(),
            seen,
        }
    }

    fn update(store_id: &str, revision: u64, is_full: bool) -> Update {
        let assigned = Assigned {
            assignment: assignment(1, 5),
            is_client_terminal: false,
        };
        Update {
            revision,
            store_id: store_id.to_owned(),
            is_full,
            assigned: vec![assigned],
            ..Update::default()
        }
    }

    #[test]
    fn an_update_is_judged_by_its_store_and_its_revision() {
        let accepted = |starts_over, is_durable| Some((starts_over, is_durable));
        for (known_store, store, revision, is_full, expected) in [
            ("one", "one", 9, true, accepted(false, false)),
            ("one", "one", 9, false, accepted(false, false)),
            // A gateway that does not name its store has the node's.
            ("one", "", 9, false, accepted(false, false)),
            // The first name that the node learns is made durable.
            ("", "one", 9, true, accepted(false, true)),
            ("", "one", 9, false, accepted(false, true)),
            // Another store: its revisions are not compared with those of the old one.
            ("one", "two", 3, true, accepted(true, true)),
            ("one", "two", 30, true, accepted(true, true)),
        ] {
            let case = format!("{known_store:?} {store:?} {revision} {is_full}");
            let received = receive(node(known_store, 8), update(store, revision, is_full));
            let found = match &received {
                UpdateDecision::Accepted(accepted) => {
                    Some((accepted.starts_over, accepted.is_durable))
                }
                _ => None,
            };
            assert_eq!(found, expected, "{case}: {received:?}");
        }
        for (store, revision, is_full, expected) in [
            ("two", 30, false, UpdateDecision::NeedsList),
            ("one", 7, true, UpdateDecision::Behind { seen: 8 }),
            ("", 7, false, UpdateDecision::Behind { seen: 8 }),
        ] {
            let received = receive(node("one", 8), update(store, revision, is_full));
            assert_eq!(received, expected, "{store:?} {revision} {is_full}");
        }
    }

    #[test]
    fn after_a_change_of_the_store_every_listed_allocation_is_updated() {
        let received = receive(node("one", 8), update("two", 6, true));
        let UpdateDecision::Accepted(accepted) = received else {
            panic!("{received:?}");
        };
        assert_eq!(accepted.changes.updated.len(), 1, "5 is newer than nothing");
        assert_eq!(accepted.store_id.as_deref(), Some("two"));
        assert!(accepted.changes.removed.is_empty());
    }

    #[test]
    fn numbers_of_allocations_that_the_node_does_not_report_are_dropped() {
        let mut update = update("one", 9, true);
        let is_client_terminal = true;
        update.assigned.push(Assigned {
            assignment: assignment(2, 9),
            is_client_terminal,
        });
        update.assigned.push(Assigned {
            assignment: assignment(3, 9),
            is_client_terminal: false,
        });
        update.invalid.push(InvalidAssignment {
            alloc_id: id(4),
            deployment_id: None,
            reason: "no job".to_owned(),
            is_client_terminal: false,
            jobless: None,
        });
        update.numbers = [1, 2, 3, 4, 5].map(|number| (id(number), 7)).into();
        let received = receive(node("one", 8), update);
        let UpdateDecision::Accepted(accepted) = received else {
            panic!("{received:?}");
        };
        let numbered: Vec<_> = accepted.numbers.keys().copied().collect();
        let mut expected = [id(1), id(3), id(4)];
        expected.sort();
        assert_eq!(numbered, expected, "2 has ended, 5 is unknown");
    }

    #[test]
    fn a_list_with_a_nameless_assignment_is_full_but_does_not_list_all() {
        for (is_full, has_nameless, lists_all) in [
            (true, false, true),
            (true, true, false),
            (false, false, false),
        ] {
            let update = Update {
                has_nameless,
                ..update("one", 9, is_full)
            };
            let received = receive(node("one", 8), update);
            let UpdateDecision::Accepted(accepted) = received else {
                panic!("{received:?}");
            };
            assert_eq!((accepted.is_full, accepted.lists_all), (is_full, lists_all));
        }
    }

    #[test]
    fn the_replaced_allocation_and_the_preempted_ones_come_first() {
        let alloc = |number| Allocation::clone(&assignment(number, 5).alloc);
        let next = Allocation {
            previous_alloc: Some(id(2)),
            ..alloc(1)
        };
        let preempted = Allocation {
            preempted_by: Some(id(1)),
            ..alloc(3)
        };
        assert!(is_predecessor(&alloc(2), &next), "replaced");
        assert!(is_predecessor(&preempted, &next), "preempted");
        assert!(!is_predecessor(&alloc(4), &next));
        assert!(!is_predecessor(&next, &alloc(2)), "not the other way round");
    }

    #[test]
    fn an_allocation_that_cannot_run_fails_and_is_unhealthy_for_its_deployment() {
        let deployment = DeploymentId::from_random(1);
        let now = Timestamp(5);
        let report = unrunnable(Some(deployment), "its job has no such group", now);
        assert_eq!(report.status, ClientStatus::Failed);
        assert!(report.description.ends_with("its job has no such group"));
        let health = report.health.unwrap();
        assert!(!health.healthy && health.deployment_id == Some(deployment) && health.time == now);
        assert_eq!(
            unrunnable(None, "", now).health,
            None,
            "no deployment waits"
        );
    }
}
