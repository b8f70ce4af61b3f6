//! Packed transactions of node reports: limits, evaluations, and a report that no transaction takes.

use admission::nodes::packing::pack;
use admission::nodes::reports::{ReportDecision, Reports, decide};
use model::{AllocClient, AllocId, ClientStatus, EvalId, Timestamp};
use state::{Entity, Key};
use test_kit::{Stored, builders};

use super::*;

const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

fn report(status: ClientStatus) -> AllocClient {
    AllocClient {
        status,
        ..AllocClient::default()
    }
}

/// The last resort after the checks of sizes.
#[tokio::test]
async fn a_report_that_no_transaction_takes_is_left_out_and_the_others_are_packed() {
    let mut outcomes = failures(1_500, 3);
    let bad = outcomes[700].alloc_id;
    let huge = AllocClient {
        description: "d".repeat(2 << 20),
        ..report(ClientStatus::Failed)
    };
    outcomes[700].write = Write::Create {
        key: Key::AllocClient(bad),
        entity: Entity::AllocClient(Box::new(huge)),
    };
    let (txns, refused) = packed(&outcomes).await;
    assert_eq!(refused, [bad]);
    let writes: usize = txns.iter().map(store::Txn::write_count).sum();
    // Each transaction has one evaluation for each of its jobs.
    assert!(
        (1_499 + 3..=1_499 + 3 * txns.len()).contains(&writes),
        "{writes}"
    );
}

/// Packs outcomes into transactions of a client that is never connected.
async fn packed(outcomes: &[ReportDecision]) -> (Vec<store::Txn>, Vec<AllocId>) {
    let nowhere = ["http://127.0.0.1:1".to_owned()];
    let client = store::Client::connect(&nowhere, store::ClientOptions::default())
        .await
        .unwrap();
    let writer = client.unfenced_writer();
    let mut evals = 0;
    let next_id = || {
        evals += 1;
        EvalId::from_random(evals)
    };
    let packed = pack(
        outcomes,
        NOW,
        "00-parent-01",
        &StoreTransactions(&writer),
        next_id,
    );
    (packed.txns, packed.refused.into_keys().collect())
}

/// Returns the outcomes of failures of `count` allocations, spread evenly over `jobs` jobs.
fn failures(count: u128, jobs: u128) -> Vec<ReportDecision> {
    let (mut stored, node) = (Stored::default(), builders::node(1));
    let mut reports = Reports::new();
    for number in 1..=count {
        let job = builders::service(&format!("job-{}", number % jobs), 1);
        if number <= jobs {
            stored.put_job(&job);
        }
        let alloc = builders::allocation(number, &job, node.id);
        stored.put_alloc(&alloc);
        reports.insert(alloc.id, report(ClientStatus::Failed));
    }
    decide(&stored.snapshot(), &reports, NOW)
}

#[tokio::test]
async fn transactions_stay_within_their_limits_and_each_has_its_evaluations() {
    for (count, jobs) in [(10, 1), (998, 3), (1_500, 1), (1_500, 1_500), (3_000, 7)] {
        let outcomes = failures(count, jobs);
        assert_eq!(outcomes.len() as u128, count);
        let (txns, refused) = packed(&outcomes).await;
        assert_eq!(refused, []);
        let writes: usize = txns.iter().map(store::Txn::write_count).sum();
        let evals = writes - outcomes.len();
        assert!(
            txns.iter().all(|txn| txn.op_count() <= 1_000),
            "{count} of {jobs} jobs"
        );
        if jobs == 1 {
            assert_eq!(evals, txns.len(), "each transaction has its own: {count}");
        }
        // Ordered by job, so at a cut one job's reports are in two transactions, with one each.
        let want = usize::try_from(jobs).unwrap()..=usize::try_from(jobs).unwrap() + txns.len() - 1;
        assert!(
            want.contains(&evals),
            "{count} of {jobs} jobs: {evals} evaluations"
        );
    }
}

#[tokio::test]
async fn nothing_to_say_makes_no_transaction() {
    assert!(packed(&[]).await.0.is_empty());
}
