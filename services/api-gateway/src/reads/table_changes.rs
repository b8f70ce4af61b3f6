//! Changes of tables, which wake blocked reads.

use std::sync::Arc;

use state::{Change, Table};
use store::{Delta, Subscription};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The revision of each table's last change, for reads that wait for one.
#[derive(Debug)]
pub struct TableChanges {
    tables: [watch::Sender<u64>; ALL.len()],
}

const ALL: [Table; 17] = [
    Table::Jobs,
    Table::JobVersions,
    Table::Evals,
    Table::Allocs,
    Table::Nodes,
    Table::Deployments,
    Table::Elections,
    Table::SchedulerConfig,
    Table::NodePools,
    Table::Volumes,
    Table::Namespaces,
    Table::Plans,
    Table::Introductions,
    Table::Services,
    Table::NodeRevocations,
    Table::Processes,
    Table::Keyring,
];

impl Default for TableChanges {
    fn default() -> Self {
        Self {
            tables: std::array::from_fn(|_| watch::Sender::new(0)),
        }
    }
}

impl TableChanges {
    pub fn note(&self, table: Table, revision: u64) {
        self.tables[table as usize].send_replace(revision);
    }

    /// Wakes all waiting reads: anything may have changed.
    pub fn note_all(&self, revision: u64) {
        for table in ALL {
            self.note(table, revision);
        }
    }

    pub fn subscribe(&self, tables: &[Table]) -> Vec<watch::Receiver<u64>> {
        tables
            .iter()
            .map(|table| self.tables[*table as usize].subscribe())
            .collect()
    }
}

/// Notes all changes until stopped, or until the replica stops.
pub async fn follow(
    tables: Arc<TableChanges>,
    mut subscription: Subscription,
    stop: CancellationToken,
) {
    loop {
        let delta = tokio::select! {
            () = stop.cancelled() => return,
            delta = subscription.next() => delta,
        };
        match delta {
            None => return,
            Some(Delta::Resnapshot(snapshot)) => tables.note_all(snapshot.index()),
            Some(Delta::Changes { revision, changes }) => {
                for table in changed(&changes) {
                    tables.note(table, revision);
                }
            }
        }
    }
}

/// Returns the tables of changes, each once. A job is stored with its version, of which subscriptions
/// have no change.
fn changed(changes: &[Change]) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut note = |table| {
        if !tables.contains(&table) {
            tables.push(table);
        }
    };
    for change in changes {
        let (Change::Put { key, .. } | Change::Delete { key }) = change;
        note(key.table());
        if key.table() == Table::Jobs {
            note(Table::JobVersions);
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use model::AllocId;
    use state::{Entity, Key};

    use super::*;

    #[test]
    fn a_job_wakes_readers_of_versions() {
        let job = test_kit::builders::service("web", 1);
        let put = Change::Put {
            key: Key::Job(job.key()),
            entity: Entity::Job(Box::new(job)),
            create_index: 1,
            modify_index: 5,
        };
        assert_eq!(changed(&[put]), [Table::Jobs, Table::JobVersions]);
    }

    #[test]
    fn every_changed_table_is_noted_once() {
        let put = |key: Key, entity: Entity| Change::Put {
            key,
            entity,
            create_index: 1,
            modify_index: 5,
        };
        let report = |number| {
            let key = Key::AllocClient(AllocId::from_random(number));
            put(key, Entity::AllocClient(Box::default()))
        };
        let gone = Change::Delete {
            key: Key::Alloc(AllocId::from_random(1)),
        };
        assert_eq!(changed(&[report(1), report(2), gone]), [Table::Allocs]);
    }
}
