//! Application of updates: revisions, stores, and the changes that [`lifecycle::changes`] decides.

use std::collections::{BTreeMap, BTreeSet};

use lifecycle::{Known, Update, changes};
use model::AllocId;
use task_runner::{Command, Handle};
use tracing::warn;

use super::agent::{Agent, Entry};
use super::record::Record;

impl Agent {
    /// Applies one message of a stream. Returns `false` if it needs a full list first, which a new
    /// stream starts with.
    pub(crate) async fn apply(&self, mut update: Update) -> bool {
        let names_store = !update.store_id.is_empty();
        let store_id = self.lock().node.store_id.clone();
        let is_other_store = names_store && !store_id.is_empty() && update.store_id != store_id;
        if is_other_store && !update.is_full {
            self.context.metrics.watch_updates_stale.inc();
            warn!("ignoring a change from another store than this node's; waiting for a full list");
            return false;
        }
        if is_other_store {
            self.start_over(&store_id, &update).await;
        }
        let is_new_name = names_store && update.store_id != store_id;
        let store_id = names_store.then(|| update.store_id.clone());
        let (revision, is_full) = (update.revision, update.is_full);
        let lists_all = is_full && !update.has_nameless;
        let mut numbers = std::mem::take(&mut update.numbers);
        let (known, seen) = {
            let facts = self.lock();
            let known = facts
                .allocs
                .iter()
                .map(|(id, entry)| (*id, Known::from(&entry.assignment)))
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
        let is_new = is_new_name || !changes.is_empty();
        // First, so that the revision is durable no later than its changes. Changes that were not
        // made come again with the next list, which is not older.
        self.store_revision(revision, store_id, is_new).await;
        // This node reports no other allocations.
        let added = changes.added.iter().map(|assignment| assignment.alloc.id);
        let invalid = changes.invalid.iter().map(|invalid| invalid.alloc_id);
        let reported: BTreeSet<AllocId> = added.chain(invalid).collect();
        numbers.retain(|id, _| known.contains_key(id) || reported.contains(id));
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
        for invalid in changes.invalid {
            self.refuse(invalid.alloc_id, invalid.deployment_id, &invalid.reason);
        }
        if is_full {
            self.first_contact().await;
        }
        if lists_all {
            self.remove_unwanted();
        }
        true
    }

    /// Records the report numbers that servers have. A number that this node does not remember is
    /// from before it lost its state, so the current state is reported with a higher one.
    async fn learn_numbers(&self, numbers: &BTreeMap<AllocId, u64>) {
        for (alloc_id, number) in numbers {
            if !self
                .context
                .tasks
                .reporter
                .queue()
                .learn(*alloc_id, *number)
            {
                continue;
            }
            let handle = {
                let facts = self.lock();
                facts.allocs.get(alloc_id).map(|entry| entry.handle.clone())
            };
            if let Some(handle) = handle {
                handle.send(Command::ReportAgain).await;
            }
        }
    }

    /// Forgets every revision and acknowledgement, because the servers have another store or an older
    /// copy of the same, where the numbers mean nothing. The full list that follows decides about
    /// every allocation.
    ///
    /// The store's name is stored after this, and before the changes of the list.
    async fn start_over(&self, store_id: &str, update: &Update) {
        let entries: Vec<Entry> = {
            let mut facts = self.lock();
            let seen = std::mem::take(&mut facts.node.revision);
            warn!(
                store_id,
                seen,
                new_store_id = update.store_id,
                revision = update.revision,
                "the servers have another store than before; starting over from their list"
            );
            for entry in facts.allocs.values_mut() {
                entry.assignment.modify_index = 0;
            }
            facts.allocs.values().cloned().collect()
        };
        self.context.tasks.reporter.queue().forget_acked();
        for Entry {
            assignment, handle, ..
        } in entries
        {
            let (alloc_id, state) = (assignment.alloc.id, &self.context.tasks.state);
            state.put_alloc(alloc_id, &Record::from(&assignment)).await;
            state.delete_acked(alloc_id).await;
            handle.send(Command::ReportAgain).await;
        }
    }

    /// Records the revision acted on. Written only with changes.
    async fn store_revision(&self, revision: u64, store_id: Option<String>, is_new: bool) {
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
        if is_new {
            self.context.tasks.state.put_node(&node).await;
        }
    }

    /// Once per run of the agent: continues the runners and reports that wait for a server's list.
    async fn first_contact(&self) {
        let handles: Vec<Handle> = {
            let mut facts = self.lock();
            if std::mem::replace(&mut facts.is_contacted, true) {
                return;
            }
            facts
                .allocs
                .values()
                .map(|entry| entry.handle.clone())
                .collect()
        };
        for handle in handles {
            handle.send(Command::ServersContacted).await;
        }
        self.context.tasks.reporter.open();
    }
}
