//! What a gateway assigns, read from the wire, and what of it is new.
//!
//! [`changes`] is the one place that decides whether something is started, changed or collected;
//! it knows revisions, and which job an allocation is of.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use model::{AllocId, Allocation, ClientStatus, DeploymentId, FieldErrors, Job, Timestamp, spec};
use proto::internal::v1::{AllocationsUpdate, Assignment as WireAssignment};
use proto::v1;
use serde::{Deserialize, Serialize};
use tracing::{error, warn};

/// An allocation with its job, as assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) alloc: Arc<Allocation>,
    pub(crate) job: Arc<Job>,
    /// When its desired side last changed.
    pub(crate) modify_index: u64,
    /// The trace of the evaluation that placed it; empty: none.
    pub(crate) trace_parent: String,
    /// Where the registered volumes are that its group asks for, by name.
    pub(crate) volume_paths: BTreeMap<String, String>,
}

/// An [`Assignment`] as it is kept on disk.
#[derive(Serialize, Deserialize)]
pub(crate) struct Record {
    alloc_id: AllocId,
    alloc: Allocation,
    job: Job,
    modify_index: u64,
    trace_parent: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    volume_paths: BTreeMap<String, String>,
}

impl From<&Assignment> for Record {
    fn from(assignment: &Assignment) -> Self {
        Self {
            alloc_id: assignment.alloc.id,
            alloc: (*assignment.alloc).clone(),
            job: (*assignment.job).clone(),
            modify_index: assignment.modify_index,
            trace_parent: assignment.trace_parent.clone(),
            volume_paths: assignment.volume_paths.clone(),
        }
    }
}

impl From<Record> for Assignment {
    fn from(record: Record) -> Self {
        let alloc = Allocation {
            id: record.alloc_id,
            ..record.alloc
        };
        Self {
            alloc: Arc::new(alloc),
            job: Arc::new(record.job),
            modify_index: record.modify_index,
            trace_parent: record.trace_parent,
            volume_paths: record.volume_paths,
        }
    }
}

/// One message of a stream, read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Update {
    pub(crate) revision: u64,
    /// The store that it counts in; empty: the gateway does not tell.
    pub(crate) store_id: String,
    /// It lists everything that the node has.
    pub(crate) is_full: bool,
    /// Some of it names no allocation, so what seems to be missing may be that.
    pub(crate) has_nameless: bool,
    pub(crate) assigned: Vec<Assigned>,
    /// Numbers of the reports that the servers have, of what may be told of here.
    pub(crate) numbers: BTreeMap<AllocId, u64>,
    pub(crate) removed: BTreeSet<AllocId>,
    /// Those that make no sense to this node.
    pub(crate) broken: Vec<Broken>,
}

/// An assignment that cannot be run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) alloc_id: AllocId,
    pub(crate) deployment_id: Option<DeploymentId>,
    pub(crate) reason: String,
    /// The servers know that nothing of it runs.
    pub(crate) is_client_terminal: bool,
    /// All but the job, when that much can be read.
    pub(crate) jobless: Option<Box<Jobless>>,
}

/// An assignment whose job did not come with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Jobless {
    alloc: Arc<Allocation>,
    modify_index: u64,
    trace_parent: String,
    volume_paths: BTreeMap<String, String>,
}

/// What this node keeps of an allocation.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) alloc: Arc<Allocation>,
    pub(crate) job: Arc<Job>,
    pub(crate) modify_index: u64,
}

impl From<&Assignment> for Kept {
    fn from(assignment: &Assignment) -> Self {
        Self {
            alloc: Arc::clone(&assignment.alloc),
            job: Arc::clone(&assignment.job),
            modify_index: assignment.modify_index,
        }
    }
}

impl Kept {
    /// Tells whether `alloc`, a later state of the same allocation, is of the job that is kept.
    fn is_of_same_job(&self, alloc: &Allocation) -> bool {
        let job = |alloc: &Allocation| (alloc.job_create_index, alloc.job_version);
        job(&self.alloc) == job(alloc)
    }

    /// Leaves an allocation its job. What servers send under its name may be another by now: a job
    /// that was purged and registered again begins with version 0 again.
    fn keep_job(&self, assignment: Assignment) -> Assignment {
        if self.is_of_same_job(&assignment.alloc) {
            let job = Arc::clone(&self.job);
            return Assignment { job, ..assignment };
        }
        assignment
    }

    /// Makes an assignment whole whose job the servers do not have any more. They need none to say
    /// that an allocation is to stop.
    fn lend_job(&self, jobless: Jobless) -> Option<Assignment> {
        let Jobless {
            alloc,
            modify_index,
            trace_parent,
            volume_paths,
        } = jobless;
        let is_enough = self.is_of_same_job(&alloc) || alloc.is_server_terminal();
        let has_group = self.job.task_group(&alloc.task_group).is_some();
        (is_enough && has_group).then(|| Assignment {
            alloc,
            job: Arc::clone(&self.job),
            modify_index,
            trace_parent,
            volume_paths,
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Assigned {
    pub(crate) assignment: Assignment,
    /// The servers know that nothing of it runs any more.
    pub(crate) is_client_terminal: bool,
}

/// Reads the messages of one stream, which sends each job version once.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// (namespace, job id, version) → job.
    jobs: HashMap<(String, String, u64), Arc<Job>>,
}

impl Reader {
    /// Reads one message. An assignment that makes no sense must not keep the node from the others:
    /// it is set aside for [`changes`], which knows whether it is here already.
    pub(crate) fn read(&mut self, wire: AllocationsUpdate) -> Update {
        for job in wire.jobs {
            let id = job.id.clone().unwrap_or_default();
            match read_job(job) {
                Ok(job) => {
                    let key = (job.namespace.clone(), job.id.clone(), job.version);
                    self.jobs.insert(key, Arc::new(job));
                }
                Err(errors) => error!(job_id = id, %errors, "a job makes no sense to this node"),
            }
        }
        let mut update = Update {
            revision: wire.revision,
            store_id: wire.store_id,
            is_full: wire.full,
            ..Update::default()
        };
        for assignment in wire.assignments {
            let number = assignment.report;
            let reported = assignment.allocation.as_ref().filter(|_| number > 0);
            if let Some(alloc_id) = reported.and_then(|alloc| alloc.id.parse().ok()) {
                update.numbers.insert(alloc_id, number);
            }
            match self.read_assignment(assignment) {
                Ok(assigned) => update.assigned.push(assigned),
                Err(Some(broken)) => {
                    let Broken {
                        alloc_id, reason, ..
                    } = &broken;
                    warn!(%alloc_id, reason, "an assignment makes no sense by itself");
                    update.broken.push(broken);
                }
                Err(None) => {
                    error!("an assignment that names no allocation");
                    update.has_nameless = true;
                }
            }
        }
        update.removed = wire
            .removed_alloc_ids
            .iter()
            .filter_map(|id| id.parse().ok())
            .collect();
        update
    }

    /// # Errors
    /// What is wrong; `None` when not even the allocation's id can be read.
    fn read_assignment(&self, wire: WireAssignment) -> Result<Assigned, Option<Broken>> {
        let allocation = wire.allocation.ok_or(None)?;
        let alloc_id = allocation.id.parse().map_err(|_| None)?;
        let modify_index = allocation.alloc_modify_index;
        let is_client_terminal = [
            ClientStatus::Complete,
            ClientStatus::Failed,
            ClientStatus::Lost,
        ]
        .iter()
        .any(|status| status.as_str() == allocation.client_status);
        let mut broken = Broken {
            alloc_id,
            deployment_id: allocation.deployment_id.parse().ok(),
            reason: String::new(),
            is_client_terminal,
            jobless: None,
        };
        let alloc = match Allocation::try_from(allocation) {
            Ok(alloc) => Arc::new(alloc),
            Err(errors) => {
                broken.reason = errors.to_string();
                return Err(Some(broken));
            }
        };
        let key = (
            alloc.namespace.to_string(),
            alloc.job_id.to_string(),
            alloc.job_version,
        );
        let volume_paths: BTreeMap<_, _> = wire.volume_paths.into_iter().collect();
        let jobless = |alloc: &Arc<Allocation>| Jobless {
            alloc: Arc::clone(alloc),
            modify_index,
            trace_parent: wire.trace_parent.clone(),
            volume_paths: volume_paths.clone(),
        };
        let Some(job) = self.jobs.get(&key) else {
            let (namespace, id, version) = key;
            broken.reason = format!("job {namespace}/{id} version {version} cannot be read");
            broken.jobless = Some(Box::new(jobless(&alloc)));
            return Err(Some(broken));
        };
        if job.task_group(&alloc.task_group).is_none() {
            broken.reason = format!("its job has no group {:?}", alloc.task_group);
            broken.jobless = Some(Box::new(jobless(&alloc)));
            return Err(Some(broken));
        }
        let assignment = Assignment {
            alloc,
            job: Arc::clone(job),
            modify_index,
            trace_parent: wire.trace_parent,
            volume_paths,
        };
        Ok(Assigned {
            assignment,
            is_client_terminal,
        })
    }
}

/// Reads a stored job: its spec with every default written out.
fn read_job(wire: v1::Job) -> Result<Job, FieldErrors> {
    let spec = spec::Job::try_from(wire)?;
    let submit_time = Timestamp(spec.submit_time.unwrap_or(0));
    let admitted = jobspec::canonicalise(&spec, submit_time)?;
    Ok(Job {
        version: spec.version.unwrap_or(0),
        ..admitted.job
    })
}

/// What an update asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) added: Vec<Assignment>,
    pub(crate) updated: Vec<Assignment>,
    /// Collected by the servers: to be stopped, if they run, and removed.
    pub(crate) removed: Vec<AllocId>,
    /// To be told as failed.
    pub(crate) broken: Vec<Broken>,
}

/// Compares an update with what is here.
///
/// A broken assignment of an allocation that is here leaves it as it is, unless what is kept of it
/// makes up for what is missing.
///
/// Returns `None` for an update older than `seen`: whoever sent it knows less than this node.
pub(crate) fn changes(
    known: &BTreeMap<AllocId, Kept>,
    seen: u64,
    update: Update,
) -> Option<Changes> {
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
            Some(kept) if assignment.modify_index > kept.modify_index => {
                changes.updated.push(kept.keep_job(assignment));
            }
            Some(_) => {}
            // It ran here, or would have, before this agent lost its memory or collected it.
            None if is_client_terminal => {}
            None => changes.added.push(assignment),
        }
    }
    for broken in update.broken {
        listed.insert(broken.alloc_id);
        match known.get(&broken.alloc_id) {
            Some(kept) => {
                let whole = broken.jobless.and_then(|jobless| kept.lend_job(*jobless));
                let news = whole.filter(|whole| whole.modify_index > kept.modify_index);
                changes.updated.extend(news);
            }
            // They have been told, or it ran here once.
            None if broken.is_client_terminal => {}
            None => changes.broken.push(broken),
        }
    }
    changes.added = in_order(changes.added, |assignment| &assignment.alloc);
    let lists_all = update.is_full && !update.has_nameless;
    let collected =
        |id: &AllocId| update.removed.contains(id) || (lists_all && !listed.contains(id));
    changes.removed = known
        .iter()
        .filter(|(id, kept)| collected(id) && update.revision > kept.modify_index)
        .map(|(id, _)| *id)
        .collect();
    Some(changes)
}

/// Puts allocations behind those that they wait for: the one each replaces, and those it displaces.
pub(crate) fn in_order<T>(mut items: Vec<T>, alloc: impl Fn(&T) -> &Allocation) -> Vec<T> {
    let mut ordered = Vec::with_capacity(items.len());
    while !items.is_empty() {
        let left: BTreeSet<AllocId> = items.iter().map(|item| alloc(item).id).collect();
        let displacing: BTreeSet<AllocId> = items
            .iter()
            .filter_map(|item| alloc(item).preempted_by)
            .collect();
        let waits = |alloc: &Allocation| {
            displacing.contains(&alloc.id)
                || alloc.previous_alloc.is_some_and(|id| left.contains(&id))
        };
        let (waiting, free): (Vec<T>, Vec<T>) =
            items.into_iter().partition(|item| waits(alloc(item)));
        if free.is_empty() {
            // A circle, which no server makes: in any order.
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
    use model::{DesiredStatus, NodeId};
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

    fn known(pairs: &[(u128, u64)]) -> BTreeMap<AllocId, Kept> {
        pairs
            .iter()
            .map(|(number, index)| {
                let assignment = assigned(*number, *index).assignment;
                (id(*number), Kept::from(&assignment))
            })
            .collect()
    }

    /// Reads a full list of one allocation, whose job the servers do not have.
    fn read_jobless(modify_index: u64, edit: impl FnOnce(&mut Allocation)) -> Update {
        let job = builders::batch("sum", 1);
        let mut alloc = builders::allocation(1, &job, NodeId::from_random(1));
        edit(&mut alloc);
        let mut wire = v1::Allocation::from(&alloc);
        wire.alloc_modify_index = modify_index;
        let assignment = WireAssignment {
            report: 0,
            allocation: Some(wire),
            trace_parent: String::new(),
            volume_paths: HashMap::new(),
        };
        Reader::default().read(AllocationsUpdate {
            revision: modify_index,
            full: true,
            assignments: vec![assignment],
            ..AllocationsUpdate::default()
        })
    }

    #[test]
    fn what_is_unknown_is_added_and_what_is_newer_is_updated() {
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
    fn scenario_018_what_vanished_from_a_full_list_is_removed() {
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
    fn a_list_that_may_be_from_before_an_allocation_does_not_remove_it() {
        let known = known(&[(1, 8)]);
        let found = ids(changes(&known, 5, update(8, true, vec![], &[1])));
        assert_eq!(found, Some((vec![], vec![], vec![])));
    }

    #[test]
    fn what_has_ended_before_is_not_run_again() {
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
    fn a_job_comes_over_the_wire_as_it_is_stored() {
        for job in [builders::service("web", 2), builders::batch("sum", 1)] {
            let admitted = jobspec::canonicalise(&spec::Job::from(&job), Timestamp(9)).unwrap();
            let mut job = admitted.job;
            job.version = 3;
            assert_eq!(read_job(v1::Job::from(&job)).unwrap(), job);
        }
    }

    #[test]
    fn an_assignment_that_makes_no_sense_is_told_as_failed_and_is_not_taken_for_collected() {
        let job = builders::batch("sum", 1);
        let alloc = builders::allocation(1, &job, NodeId::from_random(1));
        let mut reader = Reader::default();
        let assignment = WireAssignment {
            report: 6,
            allocation: Some(v1::Allocation::from(&alloc)),
            trace_parent: String::new(),
            volume_paths: HashMap::new(),
        };
        let wire = AllocationsUpdate {
            revision: 4,
            full: true,
            assignments: vec![assignment],
            ..AllocationsUpdate::default()
        };
        let read = reader.read(wire.clone());
        assert!(read.assigned.is_empty() && read.is_full);
        assert_eq!(read.numbers, BTreeMap::from([(alloc.id, 6)]));
        assert!(
            read.broken[0].reason.contains("version 0 cannot be read"),
            "{:?}",
            read.broken
        );
        let found = changes(&BTreeMap::new(), 0, read.clone()).unwrap();
        assert_eq!(found.broken.len(), 1);
        let found = changes(&known(&[(1, 2)]), 0, read).unwrap();
        assert_eq!(found, Changes::default(), "what runs is left alone");
        let jobs = vec![v1::Job::from(&job)];
        let read = reader.read(AllocationsUpdate {
            jobs,
            ..wire.clone()
        });
        assert!(read.assigned.len() == 1 && read.broken.is_empty());
        assert_eq!(
            reader.read(wire).assigned.len(),
            1,
            "once a stream is enough"
        );
    }

    #[test]
    fn an_assignment_without_a_name_makes_no_list_complete() {
        let wire = AllocationsUpdate {
            revision: 4,
            full: true,
            assignments: vec![WireAssignment::default()],
            ..AllocationsUpdate::default()
        };
        let read = Reader::default().read(wire);
        assert!(read.is_full, "the servers have answered");
        let found = changes(&known(&[(1, 2)]), 0, read).unwrap();
        assert_eq!(found, Changes::default(), "it may be what is missing");
    }

    #[test]
    fn a_stop_counts_whatever_has_become_of_the_job() {
        let stop = |alloc: &mut Allocation| alloc.desired_status = DesiredStatus::Stop;
        let known = known(&[(1, 5)]);
        let found = changes(&known, 5, read_jobless(6, stop)).unwrap();
        assert!(found.broken.is_empty());
        let [stopped] = found.updated.as_slice() else {
            panic!("{found:?}")
        };
        assert!(stopped.alloc.is_server_terminal());
        assert_eq!(stopped.job, known[&id(1)].job, "it keeps its own");
        let found = changes(&known, 5, read_jobless(5, stop)).unwrap();
        assert_eq!(found, Changes::default(), "no news");
        let other = |alloc: &mut Allocation| alloc.job_version = 7;
        let found = changes(&known, 5, read_jobless(6, other)).unwrap();
        assert_eq!(found, Changes::default(), "what runs is left alone");
    }

    #[test]
    fn a_later_job_of_the_same_name_does_not_take_an_allocation_over() {
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
    fn what_servers_know_to_have_failed_is_not_told_again() {
        let mut read = read_jobless(6, |_| {});
        assert_eq!(
            changes(&BTreeMap::new(), 5, read.clone())
                .unwrap()
                .broken
                .len(),
            1
        );
        read.broken[0].is_client_terminal = true;
        let found = changes(&BTreeMap::new(), 5, read).unwrap();
        assert_eq!(found, Changes::default());
    }

    #[test]
    fn allocations_come_behind_those_that_they_wait_for() {
        let edited = |number: u128, edit: fn(&mut Allocation)| {
            let mut assigned = assigned(number, 5);
            edit(Arc::make_mut(&mut assigned.assignment.alloc));
            assigned
        };
        // 1 replaces 2, which replaces 4; 2 displaces 3.
        let sent = vec![
            edited(1, |alloc| alloc.previous_alloc = Some(id(2))),
            edited(2, |alloc| alloc.previous_alloc = Some(id(4))),
            edited(3, |alloc| alloc.preempted_by = Some(id(2))),
            edited(4, |alloc| alloc.previous_alloc = Some(id(9))),
        ];
        let (added, ..) = ids(changes(&BTreeMap::new(), 0, update(8, true, sent, &[]))).unwrap();
        assert_eq!(added, [id(3), id(4), id(2), id(1)]);
        let circle = vec![
            edited(1, |alloc| alloc.previous_alloc = Some(id(2))),
            edited(2, |alloc| alloc.previous_alloc = Some(id(1))),
        ];
        let found = changes(&BTreeMap::new(), 0, update(8, true, circle, &[]));
        assert_eq!(found.unwrap().added.len(), 2);
    }

    #[test]
    fn a_record_gives_back_the_assignment() {
        let assignment = assigned(7, 5).assignment;
        let text = serde_json::to_string(&Record::from(&assignment)).unwrap();
        let record: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(Assignment::from(record), assignment);
    }
}
