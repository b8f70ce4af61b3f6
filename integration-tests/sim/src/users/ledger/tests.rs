//! What was refused is not done: a good history passes, a bad one is found.

use invariants::Fact;
use model::JobKey;
use state::{Entity, Key};
use test_kit::builders;

use super::{Asked, Effect, Ledger, Outcome};
use crate::testing::{Write, seen};
use crate::watcher::REQUEST;

fn registered(request: &str) -> Vec<Write> {
    let mut job = builders::service("web", 1);
    job.meta.insert(REQUEST.to_owned(), request.to_owned());
    vec![(Key::Job(job.key()), Some(Entity::Job(Box::new(job))))]
}

/// Whether a registration `a` that was refused is found to be done in this history.
fn is_found(is_certain: bool, history: Vec<Vec<Write>>) -> bool {
    let watcher = seen(history);
    let ledger = Ledger::default();
    ledger.add(Asked {
        job: JobKey::new("default", "web"),
        request: "a".to_owned(),
        effect: Effect::Registered,
        outcome: Outcome::Refused {
            why: "no".to_owned(),
            is_certain,
        },
    });
    ledger.check(&watcher);
    let found = watcher.violations();
    found
        .iter()
        .any(|violation| violation.fact == Fact::RefusedIsNotDone)
}

#[test]
fn what_was_refused_is_not_done() {
    assert!(!is_found(true, vec![]));
    assert!(!is_found(true, vec![registered("b")]));
    assert!(is_found(true, vec![registered("a")]));
    // That somebody has changed it since does not make it right.
    assert!(is_found(true, vec![registered("a"), registered("b")]));
}

#[test]
fn what_was_refused_when_it_was_sent_again_may_have_been_done_at_first() {
    assert!(!is_found(false, vec![registered("a")]));
}
