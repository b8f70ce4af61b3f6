//! Node drains: which allocations leave next, and when a drain is complete.
//!
//! A decision needs a snapshot and the time, nothing else: the drain's settings, marked allocations
//! and their replacements are all in the store, so a new leader continues where the last one
//! stopped. The caller performs the writes, and calls again only with a snapshot that shows them.
//!
//! In reading order: this file goes through the nodes; `candidate` is an allocation that may leave;
//! `pace` applies `max_parallel`; [`DrainingNodes`] tracks which nodes are worth a look.

mod candidate;
mod draining_nodes;
mod pace;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{
    Allocation, ClientStatus, DrainStatus, DrainStrategy, EvalId, Evaluation, Indexed, JobKey,
    JobType, Node, NodeId, Timestamp, TriggeredBy,
};
use placement::node_evals::job_of;
use state::{AllocView, Entity, Key, Snapshot, Write};

use candidate::Candidate;
pub use draining_nodes::DrainingNodes;

/// Allocations that one look marks at most; the next look continues. It bounds how long the writes
/// of a look take, and so how old its snapshot is by then.
pub const MARKS_PER_LOOK: usize = 5_000;

/// Allocations in one transaction. One with all its placement facts has some 4 KiB, so they stay
/// well below a transaction's limit, and other writes do not wait long.
const MARKS_PER_TXN: usize = 100;

/// The decisions of one look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrainDecisions {
    /// Allocations to migrate; one entry for each job, ordered by job.
    pub marks: Vec<JobMarks>,
    /// The completed drains.
    pub done: Vec<Completion>,
    /// The time of the next look if nothing changes.
    pub next_deadline: Option<Timestamp>,
}

/// Allocations of one job that are marked for migration.
#[derive(Clone, Debug, PartialEq)]
pub struct JobMarks {
    pub job: JobKey,
    /// One for each transaction, in order; never empty.
    pub txns: Vec<MarkTxn>,
}

/// A transaction that marks allocations of a job and creates an evaluation of it.
///
/// It compares the job, because `max_parallel` was read from it, and the nodes, because their drain
/// may have ended. The trace of the evaluation is the caller's to set.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkTxn {
    /// The number of allocations that it marks. 0: all marks are written, and only the evaluation
    /// is missing.
    pub allocs: usize,
    pub writes: Vec<Write>,
}

/// The end of a node's drain.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    pub node_id: NodeId,
    pub write: Write,
}

/// Decides for `nodes`, of which those that are not draining are ignored. `next_id` draws the ids of
/// the evaluations.
pub fn decide(
    snapshot: &Snapshot,
    now: Timestamp,
    nodes: impl IntoIterator<Item = NodeId>,
    next_id: &mut dyn FnMut() -> EvalId,
) -> DrainDecisions {
    let mut decisions = DrainDecisions::default();
    let mut jobs = BTreeMap::<JobKey, Vec<Candidate<'_>>>::new();
    let mut unevaluated = BTreeMap::new();
    for id in nodes {
        let Some(node) = snapshot.node(id) else {
            continue;
        };
        let Some(drain) = &node.value.drain else {
            continue;
        };
        let is_over = drain.is_over(now);
        if !is_over && !drain.force_deadline.is_never() {
            let next = decisions.next_deadline.unwrap_or(drain.force_deadline);
            decisions.next_deadline = Some(next.min(drain.force_deadline));
        }
        let mut staying = RemainingAllocs::on(snapshot, node, drain, now);
        if staying.is_empty() {
            decisions.done.push(complete(node, now));
        }
        unevaluated.append(&mut staying.unevaluated);
        for (view, is_due) in staying.candidates(is_over) {
            let candidate = Candidate {
                view,
                node_modify_index: node.modify_index,
                is_due,
            };
            let candidates = jobs.entry(view.alloc.job_key()).or_default();
            candidates.push(candidate);
        }
    }
    let mut room = MARKS_PER_LOOK;
    for (job, candidates) in jobs {
        let mut chosen = pace::choose(snapshot, &job, candidates);
        chosen.truncate(room);
        room -= chosen.len();
        if let Some(first) = chosen.first() {
            unevaluated.remove(&job);
            let marks = job_marks(snapshot, job, first.view, &chosen, now, next_id);
            decisions.marks.push(marks);
        }
    }
    let unevaluated = unevaluated.into_iter();
    let evals = unevaluated.map(|(job, view)| job_marks(snapshot, job, view, &[], now, next_id));
    decisions.marks.extend(evals);
    decisions
        .marks
        .sort_by(|one, other| one.job.cmp(&other.job));
    decisions
}

/// Allocations that keep a node from being drained.
#[derive(Debug, Default)]
struct RemainingAllocs<'a> {
    services: Vec<&'a AllocView>,
    /// Batch and sysbatch allocations, which may run to completion.
    batch: Vec<&'a AllocView>,
    /// Allocations of system jobs, and those that provide plugins of storage.
    system: Vec<&'a AllocView>,
    /// Stopping, marked, or about to be evaluated for another reason.
    leaving: usize,
    /// Of those, one for each job without an evaluation since the mark.
    unevaluated: BTreeMap<JobKey, &'a AllocView>,
}

impl<'a> RemainingAllocs<'a> {
    fn on(
        snapshot: &'a Snapshot,
        node: &Indexed<Node>,
        drain: &DrainStrategy,
        now: Timestamp,
    ) -> Self {
        let mut staying = Self::default();
        for view in snapshot.allocs_by_node(node.value.id) {
            let (job_type, _) = job_of(snapshot, view);
            let is_ignored = job_type == JobType::System && drain.ignore_system_jobs;
            if is_ignored || snapshot.has_left(view) {
                continue;
            }
            if is_leaving(view) {
                staying.leaving += 1;
                let key = view.alloc.job_key();
                let waits = view.alloc.transition.migrate && !view.alloc.is_server_terminal();
                if waits && snapshot.covered_index(&key, now) < view.alloc_modify_index {
                    staying.unevaluated.insert(key, view);
                }
                continue;
            }
            match job_type {
                _ if provides_plugin(snapshot, view) => staying.system.push(view),
                JobType::Service => staying.services.push(view),
                JobType::Batch | JobType::Sysbatch => staying.batch.push(view),
                JobType::System => staying.system.push(view),
            }
        }
        staying
    }

    fn is_empty(&self) -> bool {
        self.is_all_but_system_gone() && self.system.is_empty()
    }

    fn is_all_but_system_gone(&self) -> bool {
        self.services.is_empty() && self.batch.is_empty() && self.leaving == 0
    }

    /// Returns the allocations that may be marked, and whether regardless of `max_parallel`.
    ///
    /// System jobs go last, because they serve the other allocations on the node, and so do plugins of
    /// storage, without which the others cannot unmount their volumes.
    fn candidates(self, is_over: bool) -> impl Iterator<Item = (&'a AllocView, bool)> {
        let last = self.is_all_but_system_gone() || is_over;
        let services = self.services.into_iter().map(move |view| (view, is_over));
        let batch = self.batch.into_iter().filter(move |_| is_over);
        let system = self.system.into_iter().filter(move |_| last);
        services.chain(batch.chain(system).map(|view| (view, true)))
    }
}

/// Tells whether an allocation provides a plugin of storage.
fn provides_plugin(snapshot: &Snapshot, view: &AllocView) -> bool {
    let alloc = &view.alloc;
    let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
    let group = job.and_then(|job| job.value.task_group(&alloc.task_group));
    let mut tasks = group.into_iter().flat_map(|group| &group.tasks);
    tasks.any(|task| task.csi_plugin.is_some())
}

/// Tells whether an allocation needs no mark, or must not have one now: a reconnected allocation is
/// first reconciled with its replacement, and the mark would make it look disconnected again.
fn is_leaving(view: &AllocView) -> bool {
    let was_unknown = view.alloc.client_status_override == Some(ClientStatus::Unknown);
    let is_back = was_unknown && view.client_status() != ClientStatus::Unknown;
    view.alloc.is_server_terminal() || view.alloc.transition.migrate || is_back
}

fn complete(node: &Indexed<Node>, now: Timestamp) -> Completion {
    let mut done = node.value.clone();
    done.end_drain(DrainStatus::Complete, now);
    Completion {
        node_id: done.id,
        write: Write::Update {
            key: Key::Node(done.id),
            modify_index: node.modify_index,
            entity: Entity::Node(Box::new(done)),
        },
    }
}

/// Returns the transactions that mark a job's `chosen` allocations; without any, the one that
/// creates the missing evaluation. `any` is any allocation of the job.
fn job_marks(
    snapshot: &Snapshot,
    job: JobKey,
    any: &AllocView,
    chosen: &[Candidate<'_>],
    now: Timestamp,
    next_id: &mut dyn FnMut() -> EvalId,
) -> JobMarks {
    let (job_type, priority) = job_of(snapshot, any);
    let job_index = snapshot.job(&job).map_or(0, |job| job.modify_index);
    let mut mark_txn = |candidates: &[Candidate<'_>]| {
        let mut writes = vec![Write::require(Key::Job(job.clone()), job_index)];
        for candidate in candidates {
            writes.extend(mark(candidate, job_type, now));
        }
        let node_id = candidates.first().map(|it| it.view.alloc.node_id);
        writes.push(Write::create_eval(Evaluation {
            node_id,
            ..Evaluation::pending(
                next_id(),
                job.clone(),
                job_type,
                priority,
                TriggeredBy::NodeDrain,
                now,
            )
        }));
        MarkTxn {
            allocs: candidates.len(),
            writes,
        }
    };
    let txns = if chosen.is_empty() {
        vec![mark_txn(&[])]
    } else {
        chosen.chunks(MARKS_PER_TXN).map(mark_txn).collect()
    };
    JobMarks { job, txns }
}

/// Marks one allocation, if its node's drain is unchanged.
fn mark(candidate: &Candidate<'_>, job_type: JobType, now: Timestamp) -> [Write; 2] {
    let view = candidate.view;
    let mut alloc = Allocation::clone(&view.alloc);
    alloc.transition.migrate = true;
    // Batch work that the deadline stops is not restarted elsewhere.
    alloc.transition.migrate_disable_placement = job_type == JobType::Batch;
    alloc.modify_time = now;
    [
        Write::RequireUnchanged {
            key: Key::Node(alloc.node_id),
            modify_index: candidate.node_modify_index,
        },
        Write::Update {
            key: Key::Alloc(alloc.id),
            modify_index: view.alloc_modify_index,
            entity: Entity::Alloc(Box::new(alloc)),
        },
    ]
}
