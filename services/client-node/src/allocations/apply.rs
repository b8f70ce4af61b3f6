//! Application of updates: the writes, runners and reports that [`lifecycle::receive`] decides.

use std::collections::BTreeMap;

use lifecycle::{Accepted, Update, UpdateDecision, receive};
use model::AllocId;
use task_runner::{Command, Handle};
use tracing::warn;

use super::agent::{Agent, Entry};
use super::record::Record;

impl Agent {
    /// Applies one message of a stream. Returns `false` if it needs a full list first, which a new
    /// stream starts with.
    pub(crate) async fn apply(&self, update: Update) -> bool {
        let (revision, node) = (update.revision, self.lock().view());
        let Accepted {
            starts_over,
            revision,
            store_id,
            is_durable,
            numbers,
            changes,
            is_full,
            lists_all,
        } = match receive(node, update) {
            UpdateDecision::Accepted(accepted) => *accepted,
            UpdateDecision::NeedsList => {
                self.context.metrics.watch_updates_stale.inc();
                warn!(
                    "ignoring a change from another store than this node's; waiting for a full list"
                );
                return false;
            }
            UpdateDecision::Behind { seen } => {
                self.context.metrics.watch_updates_stale.inc();
                warn!(
                    revision,
                    seen, "ignoring an update from a gateway that is behind"
                );
                return true;
            }
        };
        if starts_over {
            self.start_over(store_id.as_deref().unwrap_or_default(), revision)
                .await;
        }
        self.record_revision(revision, store_id, is_durable).await;
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

    /// Forgets every revision and acknowledgement. The full list of the store `new_store_id` at
    /// `revision` decides about every allocation; its name is stored after this, and before the changes.
    async fn start_over(&self, new_store_id: &str, revision: u64) {
        let entries: Vec<Entry> = {
            let mut facts = self.lock();
            let seen = std::mem::take(&mut facts.node.revision);
            warn!(
                store_id = facts.node.store_id,
                seen,
                new_store_id,
                revision,
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

    /// Records the revision acted on. Written only with changes, or with the name of another store.
    async fn record_revision(&self, revision: u64, store_id: Option<String>, is_durable: bool) {
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
        if is_durable {
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
