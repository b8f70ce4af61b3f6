//! Dispatches: refusals, the parent of the child, and one child for each token.

use std::collections::BTreeMap;

use model::{EvalId, Job, JobKey, Parameterized, Payload, PayloadRule, Periodic, Timestamp};
use state::Key;
use test_kit::builders;

use super::fixture::{Fixture, NOW, request};
use crate::jobs::dispatch::{DispatchRequest, dispatch};
use crate::jobs::{JobRefusal, Outcome, Receipt};
use model::refusal::{Kind, Refusal as _};

fn parent() -> Job {
    let mut job = builders::batch("p", 1);
    job.meta = BTreeMap::from([("b".to_owned(), "of the parent".to_owned())]);
    job.parameterized = Some(Parameterized {
        payload: PayloadRule::Required,
        meta_required: vec!["a".to_owned()],
        meta_optional: vec!["b".to_owned()],
    });
    job
}

pub(super) fn asked() -> DispatchRequest {
    DispatchRequest {
        parent: JobKey::new("default", "p"),
        payload: Payload(b"rows".to_vec()),
        meta: BTreeMap::from([("a".to_owned(), "1".to_owned())]),
        token: String::new(),
        id_template: String::new(),
        priority: 0,
        nonce: 0xabcd,
        max_open_evals: 1_000,
    }
}

pub(super) fn with_parent() -> Fixture {
    let mut fixture = Fixture::default();
    fixture.register(&parent());
    fixture
}

fn decide(fixture: &mut Fixture, request: &DispatchRequest) -> Result<Outcome, JobRefusal> {
    let context = fixture.context();
    dispatch(&fixture.snapshot(), request, &context)
}

/// Carries a dispatch out.
fn commit(fixture: &mut Fixture, outcome: Outcome) -> Receipt {
    match outcome {
        Outcome::Commit {
            writes, receipt, ..
        } => {
            fixture.write(&writes);
            receipt
        }
        done @ Outcome::Done { .. } => panic!("{done:?}"),
    }
}

fn refusal(fixture: &mut Fixture, request: &DispatchRequest) -> String {
    decide(fixture, request).unwrap_err().to_string()
}

#[test]
fn a_parent_is_registered_without_an_evaluation() {
    let mut fixture = Fixture::default();
    fixture.register(&parent());
    let snapshot = fixture.snapshot();
    assert_eq!(snapshot.open_eval_count(), 0);
    let status = snapshot.job_status(&parent().key());
    assert_eq!(status, Some(state::JobStatus::Running));
    // A stop causes no evaluation, either, and shows in its status.
    fixture.deregister(&parent(), false);
    assert_eq!(fixture.snapshot().open_eval_count(), 0);
    let status = fixture.snapshot().job_status(&parent().key());
    assert_eq!(status, Some(state::JobStatus::Dead));
}

#[test]
fn a_child_has_its_parents_spec_and_its_own_payload_and_meta() {
    let mut fixture = with_parent();
    let request = DispatchRequest {
        id_template: "nightly".to_owned(),
        priority: 70,
        ..asked()
    };
    let outcome = decide(&mut fixture, &request).unwrap();
    let receipt = commit(&mut fixture, outcome);
    assert_eq!(receipt.job_id, "p/dispatch-nightly-1700000000-0000abcd");
    let snapshot = fixture.snapshot();
    let key = JobKey::new("default", receipt.job_id.as_str());
    let child = &snapshot.job(&key).unwrap().value;
    assert_eq!((child.parent_id.as_str(), child.dispatched), ("p", true));
    assert_eq!(child.name, receipt.job_id);
    assert_eq!((&*child.payload.0, child.version), (&b"rows"[..], 0));
    assert_eq!((child.priority, child.submit_time), (70, NOW));
    let meta = |key: &str| child.meta[key].as_str();
    assert_eq!((meta("a"), meta("b")), ("1", "of the parent"));
    let eval = &snapshot.eval(receipt.eval_id.unwrap()).unwrap().value;
    assert_eq!((&eval.job, eval.priority), (&key, 70));
    assert_eq!(snapshot.job_versions(&key).count(), 1);
    let summary = snapshot.children_summary(&parent().key()).unwrap();
    assert_eq!((summary.pending, summary.running, summary.dead), (1, 0, 0));
}

#[test]
fn scenario_019_payload_and_meta_are_as_the_job_asks_for_them() {
    let mut fixture = with_parent();
    let without_a = DispatchRequest {
        meta: BTreeMap::new(),
        ..asked()
    };
    let text = refusal(&mut fixture, &without_a);
    assert!(
        text.contains("did not provide required meta keys: [\"a\"]"),
        "{text}"
    );
    let mut unknown = asked();
    unknown.meta.insert("c".to_owned(), String::new());
    let text = refusal(&mut fixture, &unknown);
    assert!(
        text.contains("unpermitted metadata keys: [\"c\"]"),
        "{text}"
    );
    let payload = |bytes: usize| DispatchRequest {
        payload: Payload(vec![b'x'; bytes]),
        ..asked()
    };
    let text = refusal(&mut fixture, &payload(16_385));
    assert!(
        text.contains("exceeds maximum size; 16385 > 16384"),
        "{text}"
    );
    let text = refusal(&mut fixture, &payload(0));
    assert!(text.contains("not provided but required"), "{text}");
    assert!(decide(&mut fixture, &payload(16_384)).is_ok());

    let mut forbids = parent();
    forbids.parameterized.as_mut().unwrap().payload = PayloadRule::Forbidden;
    fixture.register(&forbids);
    let text = refusal(&mut fixture, &asked());
    assert!(text.contains("provided but forbidden"), "{text}");
    assert!(decide(&mut fixture, &payload(0)).is_ok());
}

#[test]
fn scenario_020_two_dispatches_with_one_token_make_one_child() {
    let mut fixture = with_parent();
    let with_token = |nonce| DispatchRequest {
        token: "t1".to_owned(),
        nonce,
        ..asked()
    };
    // Both are decided on the same state; the store lets one through.
    let first = decide(&mut fixture, &with_token(1)).unwrap();
    let second = decide(&mut fixture, &with_token(2)).unwrap();
    let writes = |outcome: &Outcome| match outcome {
        Outcome::Commit { writes, .. } => writes.clone(),
        done @ Outcome::Done { .. } => panic!("{done:?}"),
    };
    let token = Key::DispatchToken(parent().key(), "t1".to_owned());
    let contends = |outcome: &Outcome| {
        let mut all = writes(outcome).into_iter();
        all.any(|write| matches!(write, state::Write::Create { key, .. } if key == token))
    };
    assert!(contends(&first) && contends(&second));
    let receipt = commit(&mut fixture, first);
    // The other one conflicts, decides again, and finds the winner's child.
    match decide(&mut fixture, &with_token(2)).unwrap() {
        Outcome::Done { receipt: again, .. } => {
            assert_eq!(again.job_id, receipt.job_id);
            assert_eq!(again.eval_id, None);
        }
        commit @ Outcome::Commit { .. } => panic!("{commit:?}"),
    }
    assert_eq!(fixture.snapshot().children(&parent().key()).count(), 1);
}

#[test]
fn scenario_021_a_token_stands_for_its_child_as_long_as_that_is_stored() {
    let mut fixture = with_parent();
    let with_token = |nonce| DispatchRequest {
        token: "t1".to_owned(),
        nonce,
        ..asked()
    };
    let outcome = decide(&mut fixture, &with_token(1)).unwrap();
    let receipt = commit(&mut fixture, outcome);
    let key = JobKey::new("default", receipt.job_id.as_str());
    let child = fixture.snapshot().job(&key).unwrap().value.clone();
    fixture.deregister(&child, false);
    let again = decide(&mut fixture, &with_token(2)).unwrap();
    assert!(
        matches!(again, Outcome::Done { receipt: again, .. } if again.job_id == receipt.job_id)
    );
    // Purged with its token, and counted as a dead child from then on.
    fixture.deregister(&child, true);
    assert!(
        fixture
            .snapshot()
            .dispatch_token(&parent().key(), "t1")
            .is_none()
    );
    let summary = fixture
        .snapshot()
        .children_summary(&parent().key())
        .unwrap();
    assert_eq!((summary.pending, summary.dead), (0, 1));
    let outcome = decide(&mut fixture, &with_token(3)).unwrap();
    assert_ne!(commit(&mut fixture, outcome).job_id, receipt.job_id);
}

#[test]
fn a_retry_finds_the_result_of_the_first_attempt() {
    let mut fixture = with_parent();
    let context = fixture.context();
    let outcome = dispatch(&fixture.snapshot(), &asked(), &context).unwrap();
    let receipt = commit(&mut fixture, outcome);
    match dispatch(&fixture.snapshot(), &asked(), &context).unwrap() {
        Outcome::Done { receipt: again, .. } => {
            assert_eq!(
                (again.job_id, again.eval_id),
                (receipt.job_id, receipt.eval_id)
            );
        }
        commit @ Outcome::Commit { .. } => panic!("{commit:?}"),
    }
}

#[test]
fn a_refused_dispatch_says_why() {
    let mut fixture = Fixture::default();
    assert!(matches!(
        decide(&mut fixture, &asked()),
        Err(JobRefusal::NoSuchJob { .. })
    ));
    fixture.register(&builders::batch("p", 1));
    let text = refusal(&mut fixture, &asked());
    assert!(text.contains("is not a parameterized job"), "{text}");

    let mut fixture = with_parent();
    let text = refusal(
        &mut fixture,
        &DispatchRequest {
            token: "x".repeat(257),
            ..asked()
        },
    );
    assert!(text.contains("idempotency_token: has 257 bytes"), "{text}");
    let text = refusal(
        &mut fixture,
        &DispatchRequest {
            id_template: "a b".to_owned(),
            ..asked()
        },
    );
    assert!(text.contains("id_prefix_template"), "{text}");
    let text = refusal(
        &mut fixture,
        &DispatchRequest {
            priority: 101,
            ..asked()
        },
    );
    assert!(text.contains("priority: 101 is too high"), "{text}");
    let full = DispatchRequest {
        max_open_evals: 0,
        ..asked()
    };
    assert!(matches!(
        decide(&mut fixture, &full),
        Err(JobRefusal::Overloaded { .. })
    ));
    fixture.deregister(&parent(), false);
    let refusal = decide(&mut fixture, &asked()).unwrap_err();
    assert!(refusal.to_string().contains("is stopped"), "{refusal}");
    assert_eq!(refusal.kind(), Kind::Precondition);
    fixture.register(&parent());
    fixture.configure(true);
    assert!(matches!(
        decide(&mut fixture, &asked()),
        Err(JobRefusal::Rejected)
    ));
}

#[test]
fn scenario_007_a_job_does_not_become_a_parent_nor_cease_to_be_one() {
    let periodic = Periodic {
        enabled: true,
        crons: vec!["@daily".to_owned()],
        is_list: false,
        prohibit_overlap: false,
        time_zone: "UTC".to_owned(),
    };
    let plain = builders::batch("p", 1);
    let launched = Job {
        periodic: Some(periodic),
        ..plain.clone()
    };
    for (before, after, field) in [
        (&plain, &parent(), "parameterized"),
        (&parent(), &plain, "parameterized"),
        (&plain, &launched, "periodic"),
        (&launched, &plain, "periodic"),
    ] {
        let mut fixture = Fixture::default();
        fixture.register(before);
        let refusal = fixture.decide(after, &request()).unwrap_err().to_string();
        assert!(
            refusal.contains(&format!("{field}: job can't")),
            "{refusal}"
        );
    }
}

#[test]
fn a_dispatched_job_is_read_only_and_users_cannot_claim_one() {
    let mut fixture = with_parent();
    let outcome = decide(&mut fixture, &asked()).unwrap();
    let receipt = commit(&mut fixture, outcome);
    let key = JobKey::new("default", receipt.job_id.as_str());
    let child = fixture.snapshot().job(&key).unwrap().value.clone();
    // As it is, and as a file that does not say that it was dispatched: it is evaluated again.
    for same in [
        child.clone(),
        Job {
            parent_id: String::new(),
            dispatched: false,
            payload: Payload::default(),
            ..child.clone()
        },
    ] {
        let decision = fixture.decide(&same, &request()).unwrap();
        assert!(!super::fixture::proposal(decision).changed);
    }
    let other = Job {
        priority: 1,
        ..child.clone()
    };
    let refusal = fixture.decide(&other, &request()).unwrap_err().to_string();
    assert!(refusal.contains("read-only"), "{refusal}");
    let forged = Job {
        id: "q".to_owned(),
        ..child
    };
    let refusal = fixture.decide(&forged, &request()).unwrap_err().to_string();
    assert!(refusal.contains("'Dispatched' set"), "{refusal}");
    assert!(refusal.contains("with a payload"), "{refusal}");
}

/// A child that is periodic itself is launched by the clock, and has no evaluation.
#[test]
fn a_dispatched_child_may_be_periodic() {
    let mut fixture = Fixture::default();
    let mut job = parent();
    job.periodic = Some(Periodic {
        enabled: true,
        crons: vec!["@hourly".to_owned()],
        is_list: false,
        prohibit_overlap: false,
        time_zone: "UTC".to_owned(),
    });
    fixture.register(&job);
    assert_eq!(fixture.snapshot().launched_jobs().count(), 0);
    let context = fixture.context();
    let outcome = dispatch(&fixture.snapshot(), &asked(), &context).unwrap();
    let receipt = commit(&mut fixture, outcome);
    assert_eq!(receipt.eval_id, None);
    let key = JobKey::new("default", receipt.job_id.as_str());
    let launched: Vec<_> = fixture.snapshot().launched_jobs().cloned().collect();
    assert_eq!(launched, std::slice::from_ref(&key));
    let record = fixture
        .snapshot()
        .periodic_launch(&key)
        .unwrap()
        .value
        .launched;
    assert_eq!(record, Timestamp::from_secs(1_700_000_000));
    assert!(fixture.snapshot().eval(EvalId::from_random(1)).is_none());
    let again = dispatch(&fixture.snapshot(), &asked(), &context).unwrap();
    assert!(
        matches!(again, Outcome::Done { receipt: again, .. } if again.job_id == receipt.job_id)
    );
}
