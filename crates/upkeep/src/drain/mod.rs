//! Decides which allocations leave draining nodes next, and when a drain is complete.
//!
//! A look needs nothing but a snapshot and the time: what was asked for, what is on its way and
//! what stands in for it are all in the store, so a new leader goes on where the last one was.
//! Writing is the caller's: marks with their evaluation in one transaction, and the next look only
//! in a snapshot that shows them.
//!
//! In reading order: this file goes through the nodes; `pace` says how many of a group may be on
//! the move; [`Draining`] keeps which nodes are worth a look.

mod pace;
mod watch;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{
    Allocation, ClientStatus, DrainStatus, DrainStrategy, Indexed, JobKey, JobType, Node, NodeId,
    NodeStatus, Timestamp,
};
use state::{AllocView, Snapshot};

use crate::evals::job_of;
pub use watch::Draining;

/// Allocations that one look marks at most; the next look goes on. It bounds how long a look is
/// carried out, and so how old it is by then.
pub const MARKS_PER_LOOK: usize = 5_000;

/// What a look comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// Who is to leave now; at most one entry for each job, in their order. Each needs an
    /// evaluation.
    pub marks: Vec<Marks>,
    /// Nodes whose drain is complete, as they are to be stored, with the indexes that they were
    /// read at.
    pub done: Vec<Indexed<Node>>,
    /// When to look again though nothing happens.
    pub next_deadline: Option<Timestamp>,
}

/// Allocations of one job that are to leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Marks {
    pub job: JobKey,
    pub job_type: JobType,
    pub priority: u8,
    /// The revision of the job that the pace was taken from; `None`: it is purged.
    pub job_modify_index: Option<u64>,
    /// As they are to be stored; none: nobody was told to look since they were marked.
    pub allocs: Vec<Mark>,
}

/// One allocation that is to leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    pub alloc: Allocation,
    /// The revision of its key that this was decided on.
    pub modify_index: u64,
    /// The revision of its node's: the drain must still be what it was.
    pub node_modify_index: u64,
}

/// An allocation that may be marked.
#[derive(Clone, Copy, Debug)]
struct Candidate<'a> {
    view: &'a AllocView,
    node_modify_index: u64,
    /// Its time is over: nobody asks about the pace.
    is_due: bool,
}

/// Looks at `nodes`; those that are not draining are passed over.
pub fn look(snapshot: &Snapshot, now: Timestamp, nodes: impl IntoIterator<Item = NodeId>) -> Look {
    let mut look = Look::default();
    let mut jobs = BTreeMap::<JobKey, Vec<Candidate<'_>>>::new();
    let mut owed = BTreeMap::new();
    for id in nodes {
        let Some(node) = snapshot.node(id) else {
            continue;
        };
        let Some(drain) = &node.value.drain else {
            continue;
        };
        let is_over = drain.is_over(now);
        if !is_over && !drain.force_deadline.is_never() {
            let next = look.next_deadline.unwrap_or(drain.force_deadline);
            look.next_deadline = Some(next.min(drain.force_deadline));
        }
        let mut staying = Staying::on(snapshot, node, drain, now);
        if staying.is_empty() {
            look.done.push(completed(node, now));
        }
        owed.append(&mut staying.owed);
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
            owed.remove(&job);
            look.marks
                .push(marks(snapshot, job, first.view, &chosen, now));
        }
    }
    let owed = owed.into_iter();
    let evals = owed.map(|(job, view)| marks(snapshot, job, view, &[], now));
    look.marks.extend(evals);
    look.marks.sort_by(|one, other| one.job.cmp(&other.job));
    look
}

/// What keeps a node from being drained.
#[derive(Debug, Default)]
struct Staying<'a> {
    services: Vec<&'a AllocView>,
    /// Batch and sysbatch work, which may run to its end.
    batch: Vec<&'a AllocView>,
    system: Vec<&'a AllocView>,
    /// On their way out, or about to be looked at for another reason.
    leaving: usize,
    /// Of those, one for each job whose scheduler does not know of it.
    owed: BTreeMap<JobKey, &'a AllocView>,
}

impl<'a> Staying<'a> {
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
            if is_ignored || has_left(&node.value, view) {
                continue;
            }
            if is_leaving(view) {
                staying.leaving += 1;
                let key = view.alloc.job_key();
                let waits = view.alloc.transition.migrate && !view.alloc.is_server_terminal();
                if waits && snapshot.looked_at(&key, now) < view.alloc_modify_index {
                    staying.owed.insert(key, view);
                }
                continue;
            }
            match job_type {
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

    /// Returns who may be marked, and whether without asking about the pace.
    ///
    /// System jobs serve the others on the node, so they go last.
    fn candidates(self, is_over: bool) -> impl Iterator<Item = (&'a AllocView, bool)> {
        let last = self.is_all_but_system_gone() || is_over;
        let services = self.services.into_iter().map(move |view| (view, is_over));
        let batch = self.batch.into_iter().filter(move |_| is_over);
        let system = self.system.into_iter().filter(move |_| last);
        services.chain(batch.chain(system).map(|view| (view, true)))
    }
}

/// Tells whether nothing of an allocation is left on its node. Of one that is down nobody will
/// ever tell, so that it is no longer wanted there, or given up for unknown, has to be enough.
fn has_left(node: &Node, view: &AllocView) -> bool {
    let is_given_up = node.status == NodeStatus::Down
        && (view.alloc.is_server_terminal() || view.client_status() == ClientStatus::Unknown);
    view.is_client_terminal() || is_given_up
}

/// Tells whether an allocation needs no mark, or must not have one now: one that is back in reach
/// is first compared with who stood in for it, and a mark would make it look out of reach again.
fn is_leaving(view: &AllocView) -> bool {
    let was_unknown = view.alloc.client_status_override == Some(ClientStatus::Unknown);
    let is_back = was_unknown && view.client_status() != ClientStatus::Unknown;
    view.alloc.is_server_terminal() || view.alloc.transition.migrate || is_back
}

fn completed(node: &Indexed<Node>, now: Timestamp) -> Indexed<Node> {
    let mut done = node.clone();
    done.value.end_drain(DrainStatus::Complete, now);
    done
}

/// Returns what is written for a job; `one` is any of its allocations.
fn marks(
    snapshot: &Snapshot,
    job: JobKey,
    one: &AllocView,
    chosen: &[Candidate<'_>],
    now: Timestamp,
) -> Marks {
    let (job_type, priority) = job_of(snapshot, one);
    let mark = |candidate: &Candidate<'_>| {
        let mut alloc = Allocation::clone(&candidate.view.alloc);
        alloc.transition.migrate = true;
        // Work that is stopped at the deadline is not begun anew elsewhere.
        alloc.transition.migrate_disable_placement = job_type == JobType::Batch;
        alloc.modify_time = now;
        Mark {
            alloc,
            modify_index: candidate.view.alloc_modify_index,
            node_modify_index: candidate.node_modify_index,
        }
    };
    Marks {
        job_modify_index: snapshot.job(&job).map(|job| job.modify_index),
        job,
        job_type,
        priority,
        allocs: chosen.iter().map(mark).collect(),
    }
}
