//! Assignments: the comparison of the servers' updates with a node's allocations.
//!
//! [`changes`] alone decides whether an allocation is started, updated or collected. It compares
//! revisions, and keeps an allocation with the job that it was started with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{AllocId, Allocation, DeploymentId, Job};

/// An allocation with its job, as assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub alloc: Arc<Allocation>,
    pub job: Arc<Job>,
    /// Index of the last change to its desired side.
    pub modify_index: u64,
    /// The trace of the evaluation that placed it; empty: none.
    pub trace_parent: String,
    /// Name → path of the registered volumes that its group uses.
    pub volume_paths: BTreeMap<String, String>,
}

impl Assignment {
    /// Returns whether the allocation's group stops some time after the last contact with a server.
    pub fn stops_after_lost_contact(&self) -> bool {
        let group = self.job.task_group(&self.alloc.task_group);
        group
            .and_then(|group| group.disconnect)
            .is_some_and(|disconnect| disconnect.stop_on_client_after.is_some())
    }
}

/// One update of the servers: a full list of the node's allocations, or a change.
#[derive(Clone, Debug, Default)]
pub struct Update {
    pub revision: u64,
    /// The store that the revision counts in; empty: the gateway does not name it.
    pub store_id: String,
    /// Lists all of the node's allocations.
    pub is_full: bool,
    /// Some assignments have no readable allocation id, so a missing allocation may be one of them.
    pub has_nameless: bool,
    pub assigned: Vec<Assigned>,
    /// Report numbers that the servers have, of this update's allocations.
    pub numbers: BTreeMap<AllocId, u64>,
    pub removed: BTreeSet<AllocId>,
    pub invalid: Vec<InvalidAssignment>,
}

/// An assignment in an update.
#[derive(Clone, Debug)]
pub struct Assigned {
    pub assignment: Assignment,
    /// The servers know that no task of it runs any more.
    pub is_client_terminal: bool,
}

/// An assignment that this node cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAssignment {
    pub alloc_id: AllocId,
    pub deployment_id: Option<DeploymentId>,
    pub reason: String,
    /// The servers know that no task of it runs.
    pub is_client_terminal: bool,
    /// The assignment without its job, if the rest is readable.
    pub jobless: Option<Box<JoblessAssignment>>,
}

/// An assignment whose job was not sent with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoblessAssignment {
    pub alloc: Arc<Allocation>,
    pub modify_index: u64,
    pub trace_parent: String,
    pub volume_paths: BTreeMap<String, String>,
}

/// An allocation on this node.
#[derive(Clone, Debug)]
pub struct Known {
    pub alloc: Arc<Allocation>,
    pub job: Arc<Job>,
    pub modify_index: u64,
}

impl From<&Assignment> for Known {
    fn from(assignment: &Assignment) -> Self {
        Self {
            alloc: Arc::clone(&assignment.alloc),
            job: Arc::clone(&assignment.job),
            modify_index: assignment.modify_index,
        }
    }
}

impl Known {
    /// Returns whether `alloc`, a later state of the same allocation, belongs to the known job.
    fn is_of_same_job(&self, alloc: &Allocation) -> bool {
        let job = |alloc: &Allocation| (alloc.job_create_index, alloc.job_version);
        job(&self.alloc) == job(alloc)
    }

    /// Returns whether the known canary was promoted: its deployment has changed, and the allocation has
    /// not. A promotion is final, so the state without `canary` is the newer one of the two.
    fn is_promoted_in(&self, assignment: &Assignment) -> bool {
        assignment.modify_index == self.modify_index
            && self.alloc.canary
            && !assignment.alloc.canary
    }

    /// Replaces the sent job by the known one, if it is the same. A job that was purged and
    /// registered again has the same id and starts at version 0 again.
    fn keep_job(&self, assignment: Assignment) -> Assignment {
        if self.is_of_same_job(&assignment.alloc) {
            let job = Arc::clone(&self.job);
            return Assignment { job, ..assignment };
        }
        assignment
    }

    /// Completes an assignment whose job was purged from the servers. A stop is valid without the
    /// job.
    fn complete(&self, jobless: JoblessAssignment) -> Option<Assignment> {
        let JoblessAssignment {
            alloc,
            modify_index,
            trace_parent,
            volume_paths,
        } = jobless;
        let fits = self.is_of_same_job(&alloc) || alloc.is_server_terminal();
        let has_group = self.job.task_group(&alloc.task_group).is_some();
        (fits && has_group).then(|| Assignment {
            alloc,
            job: Arc::clone(&self.job),
            modify_index,
            trace_parent,
            volume_paths,
        })
    }
}

/// The consequences of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub added: Vec<Assignment>,
    pub updated: Vec<Assignment>,
    /// Allocations that the servers have collected: to be stopped, if they run, and removed.
    pub removed: Vec<AllocId>,
    /// To be reported as failed.
    pub invalid: Vec<InvalidAssignment>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.updated.is_empty() && self.removed.is_empty()
    }
}

/// Compares an update with the node's allocations.
///
/// An invalid assignment of a known allocation changes nothing, unless the known job completes it.
///
/// Returns `None` for an update older than `seen`, the highest revision acted on: its gateway is
/// behind this node.
pub fn changes(known: &BTreeMap<AllocId, Known>, seen: u64, update: Update) -> Option<Changes> {
    if update.revision < seen {
        return None;
    }
    let mut changes = Changes::default();
    let mut listed = BTreeSet::new();
    for Assigned {
        assignment,
        is_client_terminal,
    } in update.assigned
    {
        listed.insert(assignment.alloc.id);
        match known.get(&assignment.alloc.id) {
            Some(known)
                if assignment.modify_index > known.modify_index
                    || known.is_promoted_in(&assignment) =>
            {
                changes.updated.push(known.keep_job(assignment));
            }
            Some(_) => {}
            // It ended here before the agent lost its state or collected it.
            None if is_client_terminal => {}
            None => changes.added.push(assignment),
        }
    }
    for invalid in update.invalid {
        listed.insert(invalid.alloc_id);
        match known.get(&invalid.alloc_id) {
            Some(known) => {
                let complete = invalid.jobless.and_then(|jobless| known.complete(*jobless));
                let newer = complete.filter(|complete| complete.modify_index > known.modify_index);
                changes.updated.extend(newer);
            }
            // The servers know that it failed or ended.
            None if invalid.is_client_terminal => {}
            None => changes.invalid.push(invalid),
        }
    }
    changes.added = predecessors_first(changes.added, |assignment| &assignment.alloc);
    let lists_all = update.is_full && !update.has_nameless;
    let collected =
        |id: &AllocId| update.removed.contains(id) || (lists_all && !listed.contains(id));
    changes.removed = known
        .iter()
        .filter(|(id, known)| collected(id) && update.revision > known.modify_index)
        .map(|(id, _)| *id)
        .collect();
    Some(changes)
}

/// Sorts allocations behind their predecessors: the one that each replaces, and its preemption victims.
pub fn predecessors_first<T>(mut items: Vec<T>, alloc: impl Fn(&T) -> &Allocation) -> Vec<T> {
    let mut ordered = Vec::with_capacity(items.len());
    while !items.is_empty() {
        let unordered: BTreeSet<AllocId> = items.iter().map(|item| alloc(item).id).collect();
        let preemptors: BTreeSet<AllocId> = items
            .iter()
            .filter_map(|item| alloc(item).preempted_by)
            .collect();
        let waits = |alloc: &Allocation| {
            preemptors.contains(&alloc.id)
                || alloc
                    .previous_alloc
                    .is_some_and(|id| unordered.contains(&id))
        };
        let (waiting, free): (Vec<T>, Vec<T>) =
            items.into_iter().partition(|item| waits(alloc(item)));
        if free.is_empty() {
            // A cycle, which no server creates: in any order.
            ordered.extend(waiting);
            break;
        }
        ordered.extend(free);
        items = waiting;
    }
    ordered
}

#[cfg(test)]
mod tests {
    use model::NodeId;
    use test_kit::builders;

    use super::*;

    fn id(number: u128) -> AllocId {
        AllocId::from_random(number)
    }

    fn assigned(number: u128, modify_index: u64) -> Assigned {
        let job = builders::batch("sum", 1);
        let alloc = builders::allocation(number, &job, NodeId::from_random(1));
        let assignment = Assignment {
            alloc: Arc::new(alloc),
            job: Arc::new(job),
            modify_index,
            trace_parent: String::new(),
            volume_paths: BTreeMap::new(),
        };
        Assigned {
            assignment,
            is_client_terminal: false,
        }
    }

    fn update(revision: u64, is_full: bool, assigned: Vec<Assigned>, removed: &[u128]) -> Update {
        let removed = removed.iter().map(|number| id(*number)).collect();
        Update {
            revision,
            is_full,
            assigned,
            removed,
            ..Update::default()
        }
    }

    /// (added, updated, removed), by number.
    fn ids(changes: Option<Changes>) -> Option<(Vec<AllocId>, Vec<AllocId>, Vec<AllocId>)> {
        let of = |assignments: Vec<Assignment>| {
            assignments
                .into_iter()
                .map(|assignment| assignment.alloc.id)
                .collect()
        };
        changes.map(|changes| (of(changes.added), of(changes.updated), changes.removed))
    }

    fn known(pairs: &[(u128, u64)]) -> BTreeMap<AllocId, Known> {
        pairs
            .iter()
            .map(|(number, index)| {
                let assignment = assigned(*number, *index).assignment;
                (id(*number), Known::from(&assignment))
            })
            .collect()
    }

    #[test]
    fn unknown_allocations_are_added_and_newer_ones_updated() {
        let known = known(&[(1, 5), (2, 5), (3, 5)]);
        let sent = vec![
            assigned(1, 5),
            assigned(2, 6),
            assigned(3, 4),
            assigned(4, 7),
        ];
        let found = ids(changes(&known, 5, update(8, false, sent, &[])));
        assert_eq!(found, Some((vec![id(4)], vec![id(2)], vec![])));
    }

    #[test]
    fn a_promoted_canary_is_updated_though_its_allocation_has_not_changed() {
        let canary = |number, index, canary| {
            let mut assigned = assigned(number, index);
            Arc::make_mut(&mut assigned.assignment.alloc).canary = canary;
            assigned
        };
        let known: BTreeMap<AllocId, Known> = [(1, true), (2, true), (3, false)]
            .map(|(number, is_canary)| {
                let assignment = canary(number, 5, is_canary).assignment;
                (id(number), Known::from(&assignment))
            })
            .into();
        let sent = vec![canary(1, 5, false), canary(2, 4, false), canary(3, 5, true)];
        let found = ids(changes(&known, 5, update(8, false, sent, &[])));
        assert_eq!(found, Some((vec![], vec![id(1)], vec![])));
    }

    #[test]
    fn scenario_017_an_older_answer_changes_nothing() {
        let known = known(&[(1, 5)]);
        assert_eq!(changes(&known, 9, update(8, true, vec![], &[])), None);
        let found = ids(changes(
            &known,
            9,
            update(9, false, vec![assigned(1, 4)], &[]),
        ));
        assert_eq!(found, Some((vec![], vec![], vec![])));
    }

    #[test]
    fn scenario_018_allocations_missing_from_a_full_list_are_removed() {
        let known = known(&[(1, 5), (2, 5)]);
        let found = ids(changes(
            &known,
            5,
            update(8, true, vec![assigned(1, 5)], &[]),
        ));
        assert_eq!(found, Some((vec![], vec![], vec![id(2)])));
        let found = ids(changes(&known, 5, update(8, false, vec![], &[2, 7])));
        assert_eq!(found, Some((vec![], vec![], vec![id(2)])));
    }

    #[test]
    fn a_list_older_than_an_allocation_does_not_remove_it() {
        let known = known(&[(1, 8)]);
        let found = ids(changes(&known, 5, update(8, true, vec![], &[1])));
        assert_eq!(found, Some((vec![], vec![], vec![])));
    }

    #[test]
    fn an_ended_allocation_is_not_run_again() {
        let mut ended = assigned(1, 5);
        ended.is_client_terminal = true;
        let found = ids(changes(
            &BTreeMap::new(),
            0,
            update(8, true, vec![ended], &[]),
        ));
        assert_eq!(found, Some((vec![], vec![], vec![])));
    }

    #[test]
    fn a_later_job_of_the_same_name_does_not_replace_the_job_of_an_allocation() {
        let known = known(&[(1, 5)]);
        let mut sent = assigned(1, 6);
        let other = Arc::new(Job {
            priority: 99,
            ..builders::batch("sum", 1)
        });
        sent.assignment.job = Arc::clone(&other);
        let found = changes(&known, 5, update(6, false, vec![sent.clone()], &[])).unwrap();
        assert_eq!(found.updated[0].job, known[&id(1)].job);
        let alloc = Allocation {
            job_version: 1,
            ..(*sent.assignment.alloc).clone()
        };
        sent.assignment.alloc = Arc::new(alloc);
        let found = changes(&known, 5, update(6, false, vec![sent], &[])).unwrap();
        assert_eq!(found.updated[0].job, other, "a change in place");
    }

    #[test]
    fn allocations_are_sorted_behind_their_predecessors() {
        let edited = |number: u128, edit: fn(&mut Allocation)| {
            let mut assigned = assigned(number, 5);
            edit(Arc::make_mut(&mut assigned.assignment.alloc));
            assigned
        };
        // 1 replaces 2, which replaces 4; 2 preempts 3.
        let sent = vec![
            edited(1, |alloc| alloc.previous_alloc = Some(id(2))),
            edited(2, |alloc| alloc.previous_alloc = Some(id(4))),
            edited(3, |alloc| alloc.preempted_by = Some(id(2))),
            edited(4, |alloc| alloc.previous_alloc = Some(id(9))),
        ];
        let (added, ..) = ids(changes(&BTreeMap::new(), 0, update(8, true, sent, &[]))).unwrap();
        assert_eq!(added, [id(3), id(4), id(2), id(1)]);
        let cycle = vec![
            edited(1, |alloc| alloc.previous_alloc = Some(id(2))),
            edited(2, |alloc| alloc.previous_alloc = Some(id(1))),
        ];
        let found = changes(&BTreeMap::new(), 0, update(8, true, cycle, &[]));
        assert_eq!(found.unwrap().added.len(), 2);
    }
}
