//! Agent of a node: a runner per allocation, restored after a restart, changed by updates.
//!
//! Updates are applied by [`super::apply`] alone, one at a time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lifecycle::gc::Candidate;
use lifecycle::{
    AllocState, Assignment, Boot, Known, NodeView, RestartRefusal, Restoration, boot_of,
    contact_age, is_predecessor, restoration, unrunnable,
};
use local_state::{NodeState, Restored, Stored, decode};
use model::{AllocId, DeploymentId, RestartScope};
use service_kit::CancellationToken;
use task_drivers::TaskId;
use task_runner::levels::{Reserved, Source};
use task_runner::{CheckView, Command, Handle, Progress, RunnerStart};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tracing::{error, info};

use super::record::Record;
use crate::context::Context;

/// An allocation with its runner.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) assignment: Assignment,
    pub(super) handle: Handle,
    /// Its runner removes it.
    pub(super) is_collected: bool,
}

/// The agent's view of the node.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) allocs: BTreeMap<AllocId, Entry>,
    pub(super) node: NodeState,
    /// A server's list was applied in this run of the agent.
    pub(super) is_contacted: bool,
    /// An allocation stops some time after the last contact with a server.
    counts_lost_contact: bool,
    /// Attempts with driver records from earlier runs of the agent, not assigned to a runner yet.
    pub(super) leftovers: HashMap<AllocId, Vec<TaskId>>,
    /// Directories without an allocation were removed in this run of the agent.
    pub(super) is_swept: bool,
}

impl Facts {
    /// Returns what decides about an update.
    pub(super) fn view(&self) -> NodeView {
        let known = |(id, entry): (&AllocId, &Entry)| (*id, Known::from(&entry.assignment));
        NodeView {
            known: self.allocs.iter().map(known).collect(),
            store_id: self.node.store_id.clone(),
            seen: self.node.revision,
        }
    }
}

pub(crate) struct Agent {
    pub(super) context: Arc<Context>,
    facts: Mutex<Facts>,
    /// Ends every runner.
    pub(super) drain: CancellationToken,
    pub(super) runners: TaskTracker,
}

impl Agent {
    pub(crate) fn new(context: Arc<Context>, drain: CancellationToken) -> Self {
        Self {
            context,
            facts: Mutex::default(),
            drain,
            runners: TaskTracker::new(),
        }
    }

    /// Restores the runners of an earlier run of the agent. They find their running tasks again,
    /// whether or not a server can be reached.
    pub(crate) async fn restore(&self, restored: Restored, boot_id: &str) {
        let boot = boot_of(&restored.node.boot_id, boot_id);
        if boot == Boot::New && !restored.node.boot_id.is_empty() {
            info!("the machine was rebooted; starting its tasks again");
        }
        let mut leftovers: HashMap<AllocId, Vec<TaskId>> = HashMap::new();
        for driver in self.context.tasks.drivers.values() {
            for id in driver.leftovers() {
                leftovers.entry(id.alloc_id).or_default().push(id);
            }
        }
        let node = NodeState {
            boot_id: boot_id.to_owned(),
            ..restored.node
        };
        self.context.tasks.state.put_node(&node).await;
        let age = contact_age(node.last_contact, self.context.tasks.clocks.wall());
        let mut facts = Facts {
            node,
            leftovers,
            ..Facts::default()
        };
        let mut stored = restored.allocs;
        let Restoration {
            restored,
            incomplete,
        } = restoration(
            stored
                .iter()
                .map(|(alloc_id, stored)| read(*alloc_id, stored)),
        );
        for alloc_id in incomplete {
            self.context.tasks.state.delete(alloc_id).await;
            stored.remove(&alloc_id);
        }
        self.restore_reports(stored);
        for (assignment, state) in restored {
            self.restore_alloc(&mut facts, assignment, state, boot);
        }
        let handles: Vec<Handle> = lost_contact_counters(&facts);
        facts.counts_lost_contact = !handles.is_empty();
        let count = facts.allocs.len();
        *self.lock() = facts;
        self.count();
        for handle in handles {
            handle.send(Command::Contact { age }).await;
        }
        info!(allocations = count, "local state restored");
    }

    /// Restores the numbers and acknowledgements of reports.
    fn restore_reports(&self, stored: BTreeMap<AllocId, Stored>) {
        let reporter = &self.context.tasks.reporter;
        for (alloc_id, stored) in stored {
            if let Some(digest) = stored.acked {
                reporter.queue().restore_acked(alloc_id, digest);
            }
            if let Some(last) = stored.last_report {
                reporter.queue().restore_last(alloc_id, last);
            }
        }
    }

    fn restore_alloc(
        &self,
        facts: &mut Facts,
        assignment: Assignment,
        state: AllocState,
        boot: Boot,
    ) {
        let alloc_id = assignment.alloc.id;
        // A started allocation has waited for them already.
        let predecessors = if state.has_begun() {
            Vec::new()
        } else {
            predecessors(facts, &assignment)
        };
        let start = RunnerStart {
            leftovers: facts.leftovers.remove(&alloc_id).unwrap_or_default(),
            stored: Some((state, boot)),
            predecessors,
            is_contacted: false,
            assignment: assignment.clone(),
        };
        self.begin(facts, assignment, start);
    }

    pub(super) async fn add(&self, assignment: Assignment) {
        let alloc_id = assignment.alloc.id;
        self.context
            .tasks
            .state
            .put_alloc(alloc_id, &Record::from(&assignment))
            .await;
        let counter = {
            let mut facts = self.lock();
            let start = RunnerStart {
                stored: None,
                leftovers: facts.leftovers.remove(&alloc_id).unwrap_or_default(),
                predecessors: predecessors(&facts, &assignment),
                is_contacted: true,
                assignment: assignment.clone(),
            };
            self.begin(&mut facts, assignment.clone(), start);
            let counter = assignment
                .stops_after_lost_contact()
                .then(|| {
                    facts
                        .allocs
                        .get(&alloc_id)
                        .map(|entry| entry.handle.clone())
                })
                .flatten();
            facts.counts_lost_contact |= counter.is_some();
            counter
        };
        self.count();
        if let Some(handle) = counter {
            handle
                .send(Command::Contact {
                    age: Duration::ZERO,
                })
                .await;
        }
    }

    fn begin(&self, facts: &mut Facts, assignment: Assignment, start: RunnerStart) {
        let (alloc_id, deployment_id) = (assignment.alloc.id, assignment.alloc.deployment_id);
        let drain = self.drain.clone();
        let leftovers = start.leftovers.clone();
        match task_runner::spawn(&self.context.tasks, start, drain, &self.runners) {
            Some(handle) => {
                let entry = Entry {
                    assignment,
                    handle,
                    is_collected: false,
                };
                facts.allocs.insert(alloc_id, entry);
            }
            None => {
                if !leftovers.is_empty() {
                    // Removed with the attempts that no server wants.
                    facts.leftovers.insert(alloc_id, leftovers);
                }
                self.refuse(alloc_id, deployment_id, "its job has no such group");
            }
        }
    }

    /// Reports an allocation as failed, so that the servers place it elsewhere.
    pub(super) fn refuse(
        &self,
        alloc_id: AllocId,
        deployment_id: Option<DeploymentId>,
        reason: &str,
    ) {
        error!(%alloc_id, reason, "cannot run an allocation");
        let now = self.context.tasks.clocks.wall();
        let client = unrunnable(deployment_id, reason, now);
        self.context.tasks.reporter.offer(alloc_id, client);
    }

    pub(super) async fn update(&self, assignment: Assignment) {
        let alloc_id = assignment.alloc.id;
        self.context
            .tasks
            .state
            .put_alloc(alloc_id, &Record::from(&assignment))
            .await;
        let handle = {
            let mut facts = self.lock();
            let Some(entry) = facts.allocs.get_mut(&alloc_id) else {
                return;
            };
            entry.assignment = assignment.clone();
            entry.handle.clone()
        };
        handle.send(Command::Update(assignment)).await;
    }

    /// Stops an allocation and removes its files and records, in the background.
    pub(crate) async fn collect(&self, alloc_id: AllocId) -> Option<Handle> {
        let handle = {
            let mut facts = self.lock();
            let entry = facts.allocs.get_mut(&alloc_id)?;
            entry.is_collected = true;
            entry.handle.clone()
        };
        handle.send(Command::Collect).await;
        Some(handle)
    }

    /// Returns the states of an allocation's service checks; `None`: it is not on this node.
    pub(crate) async fn checks(&self, alloc_id: AllocId) -> Option<Vec<CheckView>> {
        let handle = self.lock().allocs.get(&alloc_id)?.handle.clone();
        let (answer, answered) = oneshot::channel();
        handle.send(Command::Checks { answer }).await;
        answered.await.ok()
    }

    /// Returns the runner of an allocation; `None`: it is not on this node.
    pub(crate) fn handle(&self, alloc_id: AllocId) -> Option<Handle> {
        Some(self.lock().allocs.get(&alloc_id)?.handle.clone())
    }

    /// Restarts tasks of an allocation in place, and returns their names once the restart is stored.
    /// `None`: the allocation is not on this node.
    pub(crate) async fn restart(
        &self,
        alloc_id: AllocId,
        scope: RestartScope,
    ) -> Option<Result<Vec<String>, RestartRefusal>> {
        let handle = self.lock().allocs.get(&alloc_id)?.handle.clone();
        let (answer, answered) = oneshot::channel();
        handle.send(Command::Restart { scope, answer }).await;
        // Without an answer the runner is gone, and its allocation with it.
        answered.await.ok()
    }

    /// Drops the runners whose allocation is removed.
    pub(crate) fn forget_removed(&self) {
        let mut facts = self.lock();
        facts
            .allocs
            .retain(|_, entry| *entry.handle.progress.borrow() != Progress::Removed);
        drop(facts);
        self.count();
    }

    /// Records the contact with a server.
    pub(crate) async fn record_contact(&self) {
        let now = self.context.tasks.clocks.wall();
        let (handles, node) = {
            let mut facts = self.lock();
            facts.node.last_contact = now;
            if !facts.counts_lost_contact {
                return;
            }
            (lost_contact_counters(&facts), facts.node.clone())
        };
        self.context.tasks.state.put_node(&node).await;
        for handle in handles {
            handle
                .send(Command::Contact {
                    age: Duration::ZERO,
                })
                .await;
        }
    }

    /// Returns the highest revision acted on.
    pub(crate) fn seen_revision(&self) -> u64 {
        self.lock().node.revision
    }

    /// Lists the candidates of garbage collection.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let facts = self.lock();
        let candidate = |(id, entry): (&AllocId, &Entry)| {
            let is_over = !entry.is_collected && self.context.tasks.reporter.queue().is_acked(*id);
            Candidate {
                alloc_id: *id,
                ended_at: entry.handle.ended_at().filter(|_| is_over),
            }
        };
        facts.allocs.iter().map(candidate).collect()
    }

    /// Returns the assignment of an allocation on this node, and whether it has ended.
    pub(crate) fn find(&self, alloc_id: AllocId) -> Option<(Assignment, bool)> {
        let facts = self.lock();
        let entry = facts.allocs.get(&alloc_id)?;
        Some((entry.assignment.clone(), entry.handle.has_ended()))
    }

    /// Waits for the runners to end, which the drain makes them do.
    pub(crate) async fn ended(&self) {
        self.runners.close();
        self.runners.wait().await;
    }

    fn count(&self) {
        let count = i64::try_from(self.lock().allocs.len()).unwrap_or(i64::MAX);
        self.context.metrics.allocations.set(count);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Facts> {
        // Each critical section leaves consistent facts.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decodes the records of an allocation.
fn read(alloc_id: AllocId, stored: &Stored) -> (AllocId, Option<Assignment>, Option<AllocState>) {
    let record = stored.alloc.as_deref();
    let record = record.and_then(|bytes| decode::<Record>("alloc", bytes));
    let state = stored.runner.as_deref();
    let state = state.and_then(|bytes| decode::<AllocState>("runner", bytes));
    (alloc_id, record.map(Assignment::from), state)
}

impl Source for Agent {
    fn reserved(&self) -> Reserved {
        let mut reserved = Reserved::default();
        for entry in self.lock().allocs.values() {
            if entry.handle.has_ended() {
                reserved.ended += 1;
            } else {
                let resources = entry.assignment.alloc.resources.total;
                reserved.allocated = reserved.allocated.plus(resources);
            }
        }
        reserved
    }

    fn live(&self, alloc_id: AllocId) -> Option<Assignment> {
        let (assignment, has_ended) = self.find(alloc_id)?;
        (!has_ended).then_some(assignment)
    }
}

/// Returns the allocations on this node that have to end first.
fn predecessors(facts: &Facts, assignment: &Assignment) -> Vec<Handle> {
    let comes_first = |entry: &&Entry| is_predecessor(&entry.assignment.alloc, &assignment.alloc);
    let predecessors = facts.allocs.values().filter(comes_first);
    predecessors.map(|entry| entry.handle.clone()).collect()
}

fn lost_contact_counters(facts: &Facts) -> Vec<Handle> {
    let counters = facts
        .allocs
        .values()
        .filter(|entry| entry.assignment.stops_after_lost_contact());
    counters.map(|entry| entry.handle.clone()).collect()
}
