//! Options of a replica.

use std::time::Duration;

use state::{Entity, Key, Table};

use crate::replica::metrics::ReplicaMetrics;

#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Keys per page of a list. For each page the server counts all remaining keys: 100,000 keys take
    /// 5 s in pages of 100, 0.3 s in pages of 10,000.
    pub page_size: u32,
    /// Interval of progress requests on a quiet watch: the freshness of `last_contact`.
    pub progress_interval: Duration,
    /// Time of silence after which the watch is resumed on a new stream: a few intervals, because a
    /// loaded server answers late.
    pub watch_timeout: Duration,
    /// Batches of changes that a subscriber may lag behind before it has to start again from a
    /// snapshot; 1,024 batches are seconds of a loaded store.
    pub delta_capacity: usize,
    pub metrics: ReplicaMetrics,
    pub interest: Interest,
}

/// The part of the store that a replica holds.
#[derive(Clone, Copy, Debug)]
pub struct Interest {
    /// Tables that are left out: their values are neither decoded nor held.
    pub without: &'static [Table],
    /// Events of tasks, and the description of their allocation's status: texts for people, a third of
    /// what a running allocation takes. Only writers of `alloc-client` may write what they read, so they
    /// need them.
    pub task_texts: bool,
}

impl Interest {
    pub const ALL: Self = Self {
        without: &[],
        task_texts: true,
    };

    pub(super) fn includes(&self, key: &Key) -> bool {
        !self.without.contains(&key.table())
    }

    /// Takes from `entity` what the replica does not hold.
    pub fn strip(&self, entity: &mut Entity) {
        if let Entity::AllocClient(client) = entity
            && !self.task_texts
        {
            client.description = String::new();
            for (_, state) in client.task_states.iter_mut() {
                state.events = Vec::new();
            }
        }
    }
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        Self {
            page_size: 10_000,
            progress_interval: Duration::from_secs(1),
            watch_timeout: Duration::from_secs(5),
            delta_capacity: 1_024,
            metrics: ReplicaMetrics::default(),
            interest: Interest::ALL,
        }
    }
}
