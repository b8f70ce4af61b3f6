//! Keeps a runner per allocation, and applies what servers assign.
//!
//! Only the watch of `session` applies updates, one at a time. What an update asks for is decided
//! in [`crate::assignment::changes`]; here it is carried out and kept.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lifecycle::{AllocState, Boot};
use model::{AllocClient, AllocId, ClientStatus, DeploymentHealth, DeploymentId};
use service_kit::CancellationToken;
use task_drivers::TaskId;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use crate::alloc_dir;
use crate::assignment::{Assignment, Kept, Record, Update, changes, in_order};
use crate::context::Context;
use crate::local_state::{NodeState, Restored, decode};
use crate::runner::{self, Beginning, Command, Handle, Progress, clear};

/// An allocation on this node.
#[derive(Clone)]
struct Known {
    assignment: Assignment,
    handle: Handle,
    /// Told to be destroyed.
    is_collected: bool,
}

#[derive(Default)]
struct Facts {
    known: BTreeMap<AllocId, Known>,
    node: NodeState,
    /// Whether a server's answer has been applied in this run of the agent.
    is_contacted: bool,
    /// Whether one of the allocations counts the time without a server.
    counts_silence: bool,
    /// What drivers kept from before this run of the agent, until it is known whose it is.
    leftovers: HashMap<AllocId, Vec<TaskId>>,
    /// Whether directories that no allocation owns have been looked for in this run of the agent.
    is_swept: bool,
}

/// One allocation, for the collector of garbage.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) alloc_id: AllocId,
    pub(crate) has_ended: bool,
}

pub(crate) struct Agent {
    context: Arc<Context>,
    facts: Mutex<Facts>,
    /// Ends every runner.
    drain: CancellationToken,
    runners: TaskTracker,
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

    /// Takes up everything that an earlier run of the agent left. Tasks that run are found again,
    /// whether or not a server can be reached.
    pub(crate) async fn restore(&self, restored: Restored, boot_id: &str) {
        let is_same_boot = restored.node.boot_id == boot_id;
        let boot = if is_same_boot { Boot::Same } else { Boot::New };
        if !is_same_boot && !restored.node.boot_id.is_empty() {
            info!("the machine was rebooted: its tasks are started again");
        }
        let mut leftovers: HashMap<AllocId, Vec<TaskId>> = HashMap::new();
        for driver in self.context.drivers.values() {
            for id in driver.leftovers() {
                leftovers.entry(id.alloc_id).or_default().push(id);
            }
        }
        let node = NodeState {
            boot_id: boot_id.to_owned(),
            ..restored.node
        };
        self.context.state.put_node(&node).await;
        let silence = self.context.clocks.wall().since(node.last_contact);
        let was_heard = !node.last_contact.is_never();
        let mut facts = Facts {
            node,
            leftovers,
            ..Facts::default()
        };
        let mut found = Vec::new();
        for (alloc_id, stored) in restored.allocs {
            let record = stored
                .alloc
                .and_then(|bytes| decode::<Record>("alloc", &bytes));
            let state = stored
                .runner
                .and_then(|bytes| decode::<AllocState>("runner", &bytes));
            // Without the one it is unknown what was to run, without the other whether anything
            // did; what servers still want they assign again, and drivers find what runs.
            let (Some(record), Some(state)) = (record, state) else {
                self.context.state.delete(alloc_id).await;
                continue;
            };
            if let Some(digest) = stored.acked {
                self.context.reporter.remember(alloc_id, digest);
            }
            if let Some(told) = stored.told {
                self.context.reporter.remember_told(alloc_id, told);
            }
            found.push((Assignment::from(record), state));
        }
        for (assignment, state) in in_order(found, |(assignment, _)| &assignment.alloc) {
            self.restore_alloc(&mut facts, assignment, state, boot);
        }
        let handles: Vec<Handle> = silence_counters(&facts);
        facts.counts_silence = !handles.is_empty();
        let count = facts.known.len();
        *self.lock() = facts;
        self.count();
        // The time without a server goes on while the agent is away.
        let age = if was_heard { silence } else { Duration::ZERO };
        for handle in handles {
            handle.tell(Command::Contact { age }).await;
        }
        info!(allocations = count, "local state restored");
    }

    fn restore_alloc(
        &self,
        facts: &mut Facts,
        assignment: Assignment,
        state: AllocState,
        boot: Boot,
    ) {
        let alloc_id = assignment.alloc.id;
        // One that has begun has waited for them already.
        let predecessors = if state.has_begun() {
            Vec::new()
        } else {
            predecessors(facts, &assignment)
        };
        let beginning = Beginning {
            leftovers: facts.leftovers.remove(&alloc_id).unwrap_or_default(),
            stored: Some((state, boot)),
            predecessors,
            is_contacted: false,
            assignment: assignment.clone(),
        };
        self.begin(facts, assignment, beginning);
    }

    /// Applies one message of a gateway's stream. Returns `false` when it is of no use without a full
    /// list, which another stream begins with.
    pub(crate) async fn apply(&self, mut update: Update) -> bool {
        let is_told = !update.store_id.is_empty();
        let store_id = self.lock().node.store_id.clone();
        let is_other_store = is_told && !store_id.is_empty() && update.store_id != store_id;
        if is_other_store && !update.is_full {
            self.context.metrics.watch_updates_stale.inc();
            warn!("ignoring a change in another store than this node's: a full list has to come");
            return false;
        }
        if is_other_store {
            self.start_over(&store_id, &update).await;
        }
        let is_new_name = is_told && update.store_id != store_id;
        let store_id = is_told.then(|| update.store_id.clone());
        let (revision, is_full) = (update.revision, update.is_full);
        let lists_all = is_full && !update.has_nameless;
        let mut numbers = std::mem::take(&mut update.numbers);
        let (known, seen) = {
            let facts = self.lock();
            let known = facts
                .known
                .iter()
                .map(|(id, known)| (*id, Kept::from(&known.assignment)))
                .collect();
            (known, facts.node.revision)
        };
        let Some(changes) = changes(&known, seen, update) else {
            self.context.metrics.watch_updates_stale.inc();
            warn!(
                revision,
                seen, "ignoring an update from a gateway that is behind"
            );
            return true;
        };
        let is_news = is_new_name
            || !(changes.added.is_empty()
                && changes.updated.is_empty()
                && changes.removed.is_empty());
        // Before anything is done: whatever is on disk of what follows, the revision is, too. What
        // was noted and not done is done with the next list, which is not older.
        self.note_revision(revision, store_id, is_news).await;
        // Of others this node has nothing to tell.
        let added = changes.added.iter().map(|assignment| assignment.alloc.id);
        let broken = changes.broken.iter().map(|broken| broken.alloc_id);
        let told_of: BTreeSet<AllocId> = added.chain(broken).collect();
        numbers.retain(|id, _| known.contains_key(id) || told_of.contains(id));
        self.learn_numbers(&numbers).await;
        for assignment in changes.updated {
            self.update(assignment).await;
        }
        for alloc_id in changes.removed {
            self.collect(alloc_id).await;
        }
        for assignment in changes.added {
            self.add(assignment).await;
        }
        for broken in changes.broken {
            self.refuse(broken.alloc_id, broken.deployment_id, &broken.reason);
        }
        if is_full {
            self.first_contact().await;
        }
        if lists_all {
            self.clear_leftovers();
        }
        true
    }

    /// Takes note of the reports that servers have: those that this node does not remember were sent
    /// before it lost its memory, and what is so has to be told after them.
    async fn learn_numbers(&self, numbers: &BTreeMap<AllocId, u64>) {
        for (alloc_id, number) in numbers {
            if !self.context.reporter.learn(*alloc_id, *number) {
                continue;
            }
            let handle = {
                let facts = self.lock();
                facts.known.get(alloc_id).map(|known| known.handle.clone())
            };
            if let Some(handle) = handle {
                handle.tell(Command::TellAgain).await;
            }
        }
    }

    /// Forgets every revision, and what servers have acknowledged: they count in another store, or in
    /// an older copy of this node's, so that what the node has is newer only in number. The list
    /// that comes next decides about all of it.
    ///
    /// The name of the store goes to disk after all of this, and before anything that follows.
    async fn start_over(&self, store_id: &str, update: &Update) {
        let known: Vec<Known> = {
            let mut facts = self.lock();
            let seen = std::mem::take(&mut facts.node.revision);
            warn!(
                store_id,
                seen,
                new_store_id = update.store_id,
                revision = update.revision,
                "the servers have another store than before: starting over from their list"
            );
            for known in facts.known.values_mut() {
                known.assignment.modify_index = 0;
            }
            facts.known.values().cloned().collect()
        };
        self.context.reporter.distrust();
        for Known {
            assignment, handle, ..
        } in known
        {
            let (alloc_id, state) = (assignment.alloc.id, &self.context.state);
            state.put_alloc(alloc_id, &Record::from(&assignment)).await;
            state.delete_acked(alloc_id).await;
            handle.tell(Command::TellAgain).await;
        }
    }

    async fn add(&self, assignment: Assignment) {
        let alloc_id = assignment.alloc.id;
        self.context
            .state
            .put_alloc(alloc_id, &Record::from(&assignment))
            .await;
        let counter = {
            let mut facts = self.lock();
            let beginning = Beginning {
                stored: None,
                leftovers: facts.leftovers.remove(&alloc_id).unwrap_or_default(),
                predecessors: predecessors(&facts, &assignment),
                is_contacted: true,
                assignment: assignment.clone(),
            };
            self.begin(&mut facts, assignment.clone(), beginning);
            let counter = counts_silence(&assignment)
                .then(|| facts.known.get(&alloc_id).map(|known| known.handle.clone()))
                .flatten();
            facts.counts_silence |= counter.is_some();
            counter
        };
        self.count();
        if let Some(handle) = counter {
            handle
                .tell(Command::Contact {
                    age: Duration::ZERO,
                })
                .await;
        }
    }

    fn begin(&self, facts: &mut Facts, assignment: Assignment, beginning: Beginning) {
        let (alloc_id, deployment_id) = (assignment.alloc.id, assignment.alloc.deployment_id);
        let drain = self.drain.clone();
        let leftovers = beginning.leftovers.clone();
        match runner::spawn(&self.context, beginning, drain, &self.runners) {
            Some(handle) => {
                let known = Known {
                    assignment,
                    handle,
                    is_collected: false,
                };
                facts.known.insert(alloc_id, known);
            }
            None => {
                if !leftovers.is_empty() {
                    // They go with what no server wants.
                    facts.leftovers.insert(alloc_id, leftovers);
                }
                self.refuse(alloc_id, deployment_id, "its job has no such group");
            }
        }
    }

    /// Tells servers that an allocation cannot be run here, so that they place it elsewhere.
    fn refuse(&self, alloc_id: AllocId, deployment_id: Option<DeploymentId>, reason: &str) {
        error!(%alloc_id, reason, "an allocation cannot be run here");
        let now = self.context.clocks.wall();
        let health = |deployment_id| DeploymentHealth {
            healthy: false,
            time: now,
            deployment_id: Some(deployment_id),
        };
        let client = AllocClient {
            status: ClientStatus::Failed,
            description: format!("Unable to add allocation due to error: {reason}"),
            health: deployment_id.map(health),
            modify_time: now,
            ..AllocClient::default()
        };
        self.context.reporter.offer(alloc_id, client);
    }

    async fn update(&self, assignment: Assignment) {
        let alloc_id = assignment.alloc.id;
        self.context
            .state
            .put_alloc(alloc_id, &Record::from(&assignment))
            .await;
        let handle = {
            let mut facts = self.lock();
            let Some(known) = facts.known.get_mut(&alloc_id) else {
                return;
            };
            known.assignment = assignment.clone();
            known.handle.clone()
        };
        handle.tell(Command::Update(assignment)).await;
    }

    /// Stops an allocation and removes every trace of it, in the background.
    pub(crate) async fn collect(&self, alloc_id: AllocId) -> Option<Handle> {
        let handle = {
            let mut facts = self.lock();
            let known = facts.known.get_mut(&alloc_id)?;
            known.is_collected = true;
            known.handle.clone()
        };
        handle.tell(Command::Destroy).await;
        Some(handle)
    }

    /// Forgets runners that have removed every trace of their allocation.
    pub(crate) fn forget_removed(&self) {
        let mut facts = self.lock();
        facts
            .known
            .retain(|_, known| *known.handle.progress.borrow() != Progress::Removed);
        drop(facts);
        self.count();
    }

    /// Keeps how far this node has acted; not worth a write when nothing was done.
    async fn note_revision(&self, revision: u64, store_id: Option<String>, is_news: bool) {
        let node = {
            let mut facts = self.lock();
            if let Some(store_id) = store_id {
                facts.node.store_id = store_id;
            }
            facts.node.revision = facts.node.revision.max(revision);
            facts.node.clone()
        };
        let seen = i64::try_from(node.revision).unwrap_or(i64::MAX);
        self.context.metrics.seen_revision.set(seen);
        if is_news {
            self.context.state.put_node(&node).await;
        }
    }

    /// Once per run of the agent: what waited for a server's word goes on.
    async fn first_contact(&self) {
        let handles: Vec<Handle> = {
            let mut facts = self.lock();
            if std::mem::replace(&mut facts.is_contacted, true) {
                return;
            }
            facts
                .known
                .values()
                .map(|known| known.handle.clone())
                .collect()
        };
        for handle in handles {
            handle.tell(Command::ServersContacted).await;
        }
        self.context.reporter.open();
    }

    /// Ends what runs here and no server wants, once they have listed all that they do want, and
    /// removes the directories of allocations that nothing is known of: an earlier run of the agent
    /// died, or lost its memory, before it had kept what it made them for.
    fn clear_leftovers(&self) {
        let (unwanted, wanted_dirs) = {
            let mut facts = self.lock();
            let leftovers = std::mem::take(&mut facts.leftovers);
            let is_first = !std::mem::replace(&mut facts.is_swept, true);
            let wanted_dirs = is_first.then(|| wanted_dirs(&facts));
            (leftovers, wanted_dirs)
        };
        let unwanted: Vec<TaskId> = unwanted.into_values().flatten().collect();
        let base = self.context.alloc_dir.as_deref();
        // Listed now, before anything else is assigned.
        let unwanted_dirs = match (base, wanted_dirs) {
            (Some(base), Some(wanted)) => alloc_dir::others(base, &wanted),
            _ => Vec::new(),
        };
        if unwanted.is_empty() && unwanted_dirs.is_empty() {
            return;
        }
        let (context, drain) = (Arc::clone(&self.context), self.drain.clone());
        let clearing = async move {
            for id in unwanted {
                clear(&context, &id).await;
            }
            for dirs in unwanted_dirs {
                info!(directory = %dirs.root.display(), "removing what no allocation owns");
                let removed = offload::spawn(move || alloc_dir::remove(&dirs)).await;
                if let Ok(Err(error)) = removed {
                    warn!(%error, "cannot remove the directory of an allocation that is not known");
                }
            }
        };
        self.runners.spawn(async move {
            // What stays is found by the next run.
            tokio::select! {
                () = clearing => {}
                () = drain.cancelled() => {}
            }
        });
    }

    /// Takes note that a server has answered.
    pub(crate) async fn heard(&self) {
        let now = self.context.clocks.wall();
        let (handles, node) = {
            let mut facts = self.lock();
            facts.node.last_contact = now;
            if !facts.counts_silence {
                return;
            }
            (silence_counters(&facts), facts.node.clone())
        };
        self.context.state.put_node(&node).await;
        for handle in handles {
            handle
                .tell(Command::Contact {
                    age: Duration::ZERO,
                })
                .await;
        }
    }

    /// Returns the highest revision that was acted on.
    pub(crate) fn seen_revision(&self) -> u64 {
        self.lock().node.revision
    }

    /// Lists what the collector of garbage may choose from, ended ones first to end first.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let facts = self.lock();
        let candidate = |(id, known): (&AllocId, &Known)| Candidate {
            alloc_id: *id,
            has_ended: known.handle.has_ended()
                && !known.is_collected
                && self.context.reporter.is_acked(*id),
        };
        facts.known.iter().map(candidate).collect()
    }

    /// Tells whether the node has the allocation, and whether it has ended.
    pub(crate) fn find(&self, alloc_id: AllocId) -> Option<(Assignment, bool)> {
        let facts = self.lock();
        let known = facts.known.get(&alloc_id)?;
        Some((known.assignment.clone(), known.handle.has_ended()))
    }

    /// Waits for every runner to have ended, which they do when drained.
    pub(crate) async fn ended(&self) {
        self.runners.close();
        self.runners.wait().await;
    }

    fn count(&self) {
        let count = i64::try_from(self.lock().known.len()).unwrap_or(i64::MAX);
        self.context.metrics.allocations.set(count);
    }

    fn lock(&self) -> MutexGuard<'_, Facts> {
        // Every critical section leaves the facts whole.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those on this node that have to end first: the one it replaces, and those it displaces.
fn predecessors(facts: &Facts, assignment: &Assignment) -> Vec<Handle> {
    let (alloc_id, previous) = (assignment.alloc.id, assignment.alloc.previous_alloc);
    facts
        .known
        .iter()
        .filter(|(id, known)| {
            Some(**id) == previous || known.assignment.alloc.preempted_by == Some(alloc_id)
        })
        .map(|(_, known)| known.handle.clone())
        .collect()
}

/// The allocations whose directories are of use: those that are here, and those whose data may be
/// on its way to one of them.
fn wanted_dirs(facts: &Facts) -> BTreeSet<AllocId> {
    let known = facts.known.iter();
    known
        .flat_map(|(id, known)| [Some(*id), known.assignment.alloc.previous_alloc])
        .flatten()
        .collect()
}

fn counts_silence(assignment: &Assignment) -> bool {
    let group = assignment.job.task_group(&assignment.alloc.task_group);
    group
        .and_then(|group| group.disconnect)
        .is_some_and(|disconnect| disconnect.stop_on_client_after.is_some())
}

fn silence_counters(facts: &Facts) -> Vec<Handle> {
    let counters = facts
        .known
        .values()
        .filter(|known| counts_silence(&known.assignment));
    counters.map(|known| known.handle.clone()).collect()
}
