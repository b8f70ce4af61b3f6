//! Check of everything ever committed against the invariants, by a replay of etcd's watch from the first revision.

use invariants::{History, Violation, check_indexes};
use state::Snapshot;
use store::{Client, Error};

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct Report {
    /// Number of revisions with changes.
    pub revisions: u64,
    /// Oldest first; empty without violations.
    pub violations: Vec<Violation>,
    /// The state at the end.
    pub snapshot: Snapshot,
}

/// Replays the whole history up to now, checks every revision, and the indexes at the end.
/// The store must never have been compacted.
///
/// # Errors
/// The beginning was compacted, or etcd cannot be reached.
pub async fn check_history(client: &Client) -> Result<Report, Error> {
    let mut history = History::default();
    let mut replay = store::history::History::from(client, 1).await?;
    while let Some((revision, changes)) = replay.next().await? {
        history.apply(revision, changes);
    }
    let snapshot = history.snapshot();
    let mut violations = history.violations().to_vec();
    violations.extend(check_indexes(&snapshot));
    Ok(Report {
        revisions: history.revisions(),
        violations,
        snapshot,
    })
}

#[cfg(test)]
mod tests {
    use invariants::Fact;
    use model::{Allocation, NodeId};
    use state::Key;
    use store::Writer;
    use test_kit::builders::{allocation, node, service};
    use test_kit::writes;

    use super::*;
    use crate::TestStore;

    async fn create(writer: &Writer, alloc: &Allocation) -> u64 {
        let mut txn = writer.txn();
        txn.add(&writes::create(&Key::Alloc(alloc.id), alloc))
            .unwrap();
        writer.commit(&txn).await.unwrap().revision().unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_moment_of_overcommitment_is_found_long_after() {
        let store = TestStore::start().await;
        let client = store.client().await;
        let writer = client.unfenced_writer();
        let mut txn = writer.txn();
        txn.add(&writes::create(&Key::Node(node(1).id), &node(1)))
            .unwrap();
        writer.commit(&txn).await.unwrap();
        let mut job = service("web", 9);
        job.task_groups[0].tasks[0].resources.cpu_mhz = 3_000;
        let numbered = |number: u32| {
            let mut alloc = allocation(number.into(), &job, node(1).id);
            alloc.name_index = number;
            alloc
        };
        create(&writer, &numbered(1)).await;
        let too_much = create(&writer, &numbered(2)).await;
        let mut txn = writer.txn();
        txn.add(&writes::delete(&Key::Alloc(numbered(2).id), too_much))
            .unwrap();
        writer.commit(&txn).await.unwrap();

        let report = check_history(&client).await.unwrap();
        assert_eq!(report.revisions, 4);
        let found: Vec<_> = report
            .violations
            .iter()
            .map(|found| (found.revision, found.fact))
            .collect();
        assert_eq!(found, [(too_much, Fact::NodeNotOvercommitted)]);
        assert_eq!(
            report
                .snapshot
                .allocs_by_node(NodeId::from_random(1))
                .count(),
            1
        );
    }
}
