//! The check that refused requests have no effect, on good and bad histories.

use invariants::Fact;
use model::JobKey;
use state::{Entity, Key};
use test_kit::builders;

use super::{Effect, Ledger, Outcome};
use crate::checker::REQUEST;
use crate::testing::{Write, seen};

fn web() -> JobKey {
    JobKey::new("default", "web")
}

fn registered(request: &str) -> Vec<Write> {
    let mut job = builders::service("web", 1);
    job.meta.insert(REQUEST.to_owned(), request.to_owned());
    vec![(Key::Job(job.key()), Some(Entity::Job(Box::new(job))))]
}

/// Returns whether the check reports the refused registration `a` in this history.
fn is_found(is_certain: bool, history: Vec<Vec<Write>>) -> bool {
    let checker = seen(history);
    let ledger = Ledger::default();
    let reason = "no".to_owned();
    let number = ledger.open(web(), "a".to_owned(), Effect::Registered);
    ledger.record_outcome(number, Outcome::Refused { reason, is_certain });
    ledger.check(&checker);
    let found = checker.violations();
    found
        .iter()
        .any(|violation| violation.fact == Fact::RefusedIsNotDone)
}

#[test]
fn a_refused_request_in_the_history_is_reported() {
    assert!(!is_found(true, vec![]));
    assert!(!is_found(true, vec![registered("b")]));
    assert!(is_found(true, vec![registered("a")]));
    // A later change does not hide it.
    assert!(is_found(true, vec![registered("a"), registered("b")]));
}

#[test]
fn a_refused_retry_may_have_succeeded_at_first() {
    assert!(!is_found(false, vec![registered("a")]));
}

/// Returns whether the check reports a purge that was acknowledged at this revision.
fn is_purge_found(job_index: u64, history: Vec<Vec<Write>>) -> bool {
    let checker = seen(history);
    let ledger = Ledger::default();
    let number = ledger.open(web(), "b".to_owned(), Effect::Purged);
    ledger.record_outcome(number, Outcome::Done { job_index });
    ledger.check(&checker);
    let found = checker.violations();
    found
        .iter()
        .any(|violation| violation.fact == Fact::AcknowledgedIsKept)
}

#[test]
fn a_purge_is_acknowledged_at_its_revision_or_while_the_job_is_gone() {
    let purged = || vec![(Key::Job(web()), None)];
    let first = seen(vec![registered("a")]).snapshot().index();
    let found = |index| is_purge_found(index, vec![registered("a"), purged()]);
    assert!(found(first), "not yet");
    assert!(!found(first + 1));
    assert!(!found(first + 9), "the answer of the commit was lost");
    let again = vec![registered("a"), purged(), registered("c")];
    assert!(is_purge_found(first + 2, again), "there again");
}

#[test]
fn a_request_that_still_waits_for_its_answer_may_have_undone_an_acknowledged_one() {
    let checker = seen([registered("a"), registered("b")]);
    let ledger = Ledger::default();
    let number = ledger.open(web(), "a".to_owned(), Effect::Registered);
    let first = checker.snapshot().index() - 1;
    ledger.record_outcome(number, Outcome::Done { job_index: first });
    let is_found = |ledger: &Ledger| {
        ledger.check(&checker);
        let found = checker.violations();
        found.iter().any(|it| it.fact == Fact::AcknowledgedIsKept)
    };
    let waiting = ledger.open(web(), "b".to_owned(), Effect::Registered);
    assert!(!is_found(&ledger));
    let reason = "no".to_owned();
    let is_certain = true;
    ledger.record_outcome(waiting, Outcome::Refused { reason, is_certain });
    assert!(is_found(&ledger), "it was refused");
}
