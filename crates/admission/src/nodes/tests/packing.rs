//! Packing of reports into transactions, with limits as small as a test can count.

use std::cell::Cell;

use model::{AllocClient, AllocId, ClientStatus, EvalId, Timestamp};
use state::{Key, Write};
use test_kit::{Stored, builders};

use crate::nodes::packing::{Packed, Transactions, pack};
use crate::nodes::reports::{ReportDecision, Reports, decide};

const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// Transactions of at most `max` writes.
struct Limited {
    max: usize,
}

impl Limited {
    fn check(&self, count: usize) -> Result<(), usize> {
        if count > self.max { Err(count) } else { Ok(()) }
    }
}

impl Transactions for Limited {
    type Txn = Vec<Key>;
    type Error = usize;

    fn build(&self, writes: &[Write]) -> Result<Vec<Key>, usize> {
        self.check(writes.len())?;
        Ok(writes.iter().map(|write| write.key().clone()).collect())
    }

    fn merge(&self, txn: &mut Vec<Key>, part: &Vec<Key>) -> Result<(), usize> {
        self.check(txn.len() + part.len())?;
        txn.extend(part.iter().cloned());
        Ok(())
    }
}

/// Returns the outcomes of failures of `count` allocations of each of `jobs` jobs.
fn failures(jobs: u128, count: u128) -> Vec<ReportDecision> {
    let (mut stored, node) = (Stored::default(), builders::node(1));
    let mut reports = Reports::new();
    for number in 0..jobs * count {
        let job = builders::service(&format!("job-{}", number % jobs), 1);
        if number < jobs {
            stored.put_job(&job);
        }
        let alloc = builders::allocation(number + 1, &job, node.id);
        stored.put_alloc(&alloc);
        let report = AllocClient {
            status: ClientStatus::Failed,
            ..AllocClient::default()
        };
        reports.insert(alloc.id, report);
    }
    decide(&stored.snapshot(), &reports, NOW)
}

fn packed(outcomes: &[ReportDecision], max: usize) -> Packed<Vec<Key>, usize> {
    let evals = Cell::new(0);
    let next_id = || {
        evals.set(evals.get() + 1);
        EvalId::from_random(evals.get())
    };
    pack(outcomes, NOW, "00-parent-01", &Limited { max }, next_id)
}

/// Returns, for each transaction, the number of its writes and of its evaluations.
fn shape(packed: &Packed<Vec<Key>, usize>) -> Vec<(usize, usize)> {
    let count = |txn: &Vec<Key>| {
        let evals = txn.iter().filter(|key| matches!(key, Key::Eval(_))).count();
        (txn.len(), evals)
    };
    packed.txns.iter().map(count).collect()
}

#[test]
fn reports_of_one_job_share_the_evaluation_of_their_transaction() {
    let outcomes = failures(1, 5);
    assert_eq!(shape(&packed(&outcomes, 10)), [(6, 1)]);
    // A transaction may be committed without the next one, so each has an evaluation.
    assert_eq!(shape(&packed(&outcomes, 4)), [(4, 1), (3, 1)]);
}

#[test]
fn each_job_of_a_transaction_has_its_evaluation() {
    assert_eq!(shape(&packed(&failures(3, 1), 10)), [(6, 3)]);
    assert_eq!(shape(&packed(&failures(3, 1), 4)), [(4, 2), (2, 1)]);
}

#[test]
fn a_report_that_no_transaction_takes_is_refused_and_delays_no_other() {
    let mut outcomes = failures(1, 3);
    let large = outcomes[1].alloc_id;
    outcomes[1].services = Some(outcomes[1].write.clone());
    let packed = packed(&outcomes, 2);
    assert_eq!(
        packed
            .refused
            .into_iter()
            .collect::<Vec<(AllocId, usize)>>(),
        [(large, 3)]
    );
    assert_eq!(packed.txns.len(), 2);
}

#[test]
fn a_canceled_evaluation_is_written_once() {
    let mut outcomes = failures(1, 3);
    let cancel = outcomes[0].write.clone();
    for outcome in &mut outcomes {
        outcome.canceled = Some((EvalId::from_random(9), cancel.clone()));
    }
    // Three reports, one evaluation, one cancellation.
    assert_eq!(shape(&packed(&outcomes, 10)), [(5, 1)]);
}

#[test]
fn no_reports_make_no_transaction() {
    assert_eq!(shape(&packed(&[], 10)), []);
}
