//! Dispatches: what is refused, whose child it is, and that a token makes one child.

use std::collections::BTreeMap;

use model::{EvalId, Job, JobKey, Parameterized, Payload, PayloadRule, Periodic, Timestamp};
use state::Key;
use test_kit::builders;

use super::world::{NOW, World, request};
use crate::admission::dispatch::{DispatchRequest, dispatch};
use crate::admission::{Made, Outcome, Refusal};
use crate::error::Error;

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

fn asked() -> DispatchRequest {
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

fn with_parent() -> World {
    let mut world = World::default();
    world.register(&parent());
    world
}

fn decide(world: &mut World, request: &DispatchRequest) -> Result<Outcome, Refusal> {
    let stamp = world.stamp();
    dispatch(&world.snapshot(), request, &stamp)
}

/// Carries a dispatch out.
fn commit(world: &mut World, outcome: Outcome) -> Made {
    match outcome {
        Outcome::Commit { writes, made } => {
            world.write(&writes);
            made
        }
        done @ Outcome::Done { .. } => panic!("{done:?}"),
    }
}

fn refusal(world: &mut World, request: &DispatchRequest) -> String {
    decide(world, request).unwrap_err().to_string()
}

#[test]
fn a_parent_is_registered_without_an_evaluation() {
    let mut world = World::default();
    world.register(&parent());
    let snapshot = world.snapshot();
    assert_eq!(snapshot.open_eval_count(), 0);
    let status = snapshot.job_status(&parent().key());
    assert_eq!(status, Some(state::JobStatus::Running));
    // Nor is it looked at when it stops, and its status says so.
    world.deregister(&parent(), false);
    assert_eq!(world.snapshot().open_eval_count(), 0);
    let status = world.snapshot().job_status(&parent().key());
    assert_eq!(status, Some(state::JobStatus::Dead));
}

#[test]
fn a_child_has_what_its_parent_has_and_what_it_is_told() {
    let mut world = with_parent();
    let request = DispatchRequest {
        id_template: "nightly".to_owned(),
        priority: 70,
        ..asked()
    };
    let outcome = decide(&mut world, &request).unwrap();
    let made = commit(&mut world, outcome);
    assert_eq!(made.job_id, "p/dispatch-nightly-1700000000-0000abcd");
    let snapshot = world.snapshot();
    let key = JobKey::new("default", made.job_id.as_str());
    let child = &snapshot.job(&key).unwrap().value;
    assert_eq!((child.parent_id.as_str(), child.dispatched), ("p", true));
    assert_eq!((&*child.payload.0, child.version), (&b"rows"[..], 0));
    assert_eq!((child.priority, child.submit_time), (70, NOW));
    let meta = |key: &str| child.meta[key].as_str();
    assert_eq!((meta("a"), meta("b")), ("1", "of the parent"));
    let eval = &snapshot.eval(made.eval_id.unwrap()).unwrap().value;
    assert_eq!((&eval.job, eval.priority), (&key, 70));
    assert_eq!(snapshot.job_versions(&key).count(), 1);
    let summary = snapshot.children_summary(&parent().key()).unwrap();
    assert_eq!((summary.pending, summary.running, summary.dead), (1, 0, 0));
}

#[test]
fn scenario_019_payload_and_meta_are_as_the_job_asks_for_them() {
    let mut world = with_parent();
    let without_a = DispatchRequest {
        meta: BTreeMap::new(),
        ..asked()
    };
    let text = refusal(&mut world, &without_a);
    assert!(
        text.contains("did not provide required meta keys: [\"a\"]"),
        "{text}"
    );
    let mut unknown = asked();
    unknown.meta.insert("c".to_owned(), String::new());
    let text = refusal(&mut world, &unknown);
    assert!(
        text.contains("unpermitted metadata keys: [\"c\"]"),
        "{text}"
    );
    let payload = |bytes: usize| DispatchRequest {
        payload: Payload(vec![b'x'; bytes]),
        ..asked()
    };
    let text = refusal(&mut world, &payload(16_385));
    assert!(
        text.contains("exceeds maximum size; 16385 > 16384"),
        "{text}"
    );
    let text = refusal(&mut world, &payload(0));
    assert!(text.contains("not provided but required"), "{text}");
    assert!(decide(&mut world, &payload(16_384)).is_ok());

    let mut forbids = parent();
    forbids.parameterized.as_mut().unwrap().payload = PayloadRule::Forbidden;
    world.register(&forbids);
    let text = refusal(&mut world, &asked());
    assert!(text.contains("provided but forbidden"), "{text}");
    assert!(decide(&mut world, &payload(0)).is_ok());
}

#[test]
fn scenario_020_two_dispatches_with_one_token_make_one_child() {
    let mut world = with_parent();
    let with_token = |nonce| DispatchRequest {
        token: "t1".to_owned(),
        nonce,
        ..asked()
    };
    // Both are decided on the same state; the store lets one through.
    let first = decide(&mut world, &with_token(1)).unwrap();
    let second = decide(&mut world, &with_token(2)).unwrap();
    let writes = |outcome: &Outcome| match outcome {
        Outcome::Commit { writes, .. } => writes.clone(),
        done @ Outcome::Done { .. } => panic!("{done:?}"),
    };
    let token = Key::DispatchToken(parent().key(), "t1".to_owned());
    let contends = |outcome: &Outcome| {
        let mut all = writes(outcome).into_iter();
        all.any(|write| matches!(write, crate::writes::Write::Create { key, .. } if key == token))
    };
    assert!(contends(&first) && contends(&second));
    let made = commit(&mut world, first);
    // The other is told so, decides again, and finds the winner's child.
    match decide(&mut world, &with_token(2)).unwrap() {
        Outcome::Done { made: again, .. } => {
            assert_eq!(again.job_id, made.job_id);
            assert_eq!(again.eval_id, None);
        }
        commit @ Outcome::Commit { .. } => panic!("{commit:?}"),
    }
    assert_eq!(world.snapshot().children(&parent().key()).count(), 1);
}

#[test]
fn scenario_021_a_token_stands_for_its_child_as_long_as_that_is_stored() {
    let mut world = with_parent();
    let with_token = |nonce| DispatchRequest {
        token: "t1".to_owned(),
        nonce,
        ..asked()
    };
    let outcome = decide(&mut world, &with_token(1)).unwrap();
    let made = commit(&mut world, outcome);
    let key = JobKey::new("default", made.job_id.as_str());
    let child = world.snapshot().job(&key).unwrap().value.clone();
    world.deregister(&child, false);
    let again = decide(&mut world, &with_token(2)).unwrap();
    assert!(matches!(again, Outcome::Done { made: again, .. } if again.job_id == made.job_id));
    // Purged with its token, and counted as a dead child from then on.
    world.deregister(&child, true);
    assert!(
        world
            .snapshot()
            .dispatch_token(&parent().key(), "t1")
            .is_none()
    );
    let summary = world.snapshot().children_summary(&parent().key()).unwrap();
    assert_eq!((summary.pending, summary.dead), (0, 1));
    let outcome = decide(&mut world, &with_token(3)).unwrap();
    assert_ne!(commit(&mut world, outcome).job_id, made.job_id);
}

#[test]
fn a_retry_finds_what_the_first_attempt_made() {
    let mut world = with_parent();
    let stamp = world.stamp();
    let outcome = dispatch(&world.snapshot(), &asked(), &stamp).unwrap();
    let made = commit(&mut world, outcome);
    match dispatch(&world.snapshot(), &asked(), &stamp).unwrap() {
        Outcome::Done { made: again, .. } => {
            assert_eq!((again.job_id, again.eval_id), (made.job_id, made.eval_id));
        }
        commit @ Outcome::Commit { .. } => panic!("{commit:?}"),
    }
}

#[test]
fn what_cannot_be_dispatched_says_why() {
    let mut world = World::default();
    assert!(matches!(
        decide(&mut world, &asked()),
        Err(Refusal::NoSuchJob { .. })
    ));
    world.register(&builders::batch("p", 1));
    let text = refusal(&mut world, &asked());
    assert!(text.contains("is not a parameterized job"), "{text}");

    let mut world = with_parent();
    let text = refusal(
        &mut world,
        &DispatchRequest {
            token: "x".repeat(257),
            ..asked()
        },
    );
    assert!(text.contains("idempotency_token: has 257 bytes"), "{text}");
    let text = refusal(
        &mut world,
        &DispatchRequest {
            id_template: "a b".to_owned(),
            ..asked()
        },
    );
    assert!(text.contains("id_prefix_template"), "{text}");
    let text = refusal(
        &mut world,
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
        decide(&mut world, &full),
        Err(Refusal::Overloaded { .. })
    ));
    world.deregister(&parent(), false);
    let refusal = decide(&mut world, &asked()).unwrap_err();
    assert!(refusal.to_string().contains("is stopped"), "{refusal}");
    assert_eq!(Error::from(refusal).code(), tonic::Code::FailedPrecondition);
    world.register(&parent());
    world.configure(true);
    assert!(matches!(
        decide(&mut world, &asked()),
        Err(Refusal::Rejected)
    ));
}

#[test]
fn scenario_007_a_job_does_not_become_a_parent_nor_cease_to_be_one() {
    let periodic = Periodic {
        enabled: true,
        crons: vec!["@daily".to_owned()],
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
        let mut world = World::default();
        world.register(before);
        let refusal = world.decide(after, &request()).unwrap_err().to_string();
        assert!(
            refusal.contains(&format!("{field}: job can't")),
            "{refusal}"
        );
    }
}

#[test]
fn what_was_dispatched_is_read_only_and_nobody_else_says_so() {
    let mut world = with_parent();
    let outcome = decide(&mut world, &asked()).unwrap();
    let made = commit(&mut world, outcome);
    let key = JobKey::new("default", made.job_id.as_str());
    let child = world.snapshot().job(&key).unwrap().value.clone();
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
        let decision = world.decide(&same, &request()).unwrap();
        assert!(!super::world::proposal(decision).changed);
    }
    let other = Job {
        priority: 1,
        ..child.clone()
    };
    let refusal = world.decide(&other, &request()).unwrap_err().to_string();
    assert!(refusal.contains("read-only"), "{refusal}");
    let forged = Job {
        id: "q".to_owned(),
        ..child
    };
    let refusal = world.decide(&forged, &request()).unwrap_err().to_string();
    assert!(refusal.contains("'Dispatched' set"), "{refusal}");
    assert!(refusal.contains("with a payload"), "{refusal}");
}

/// A child that is periodic itself is launched by the clock, and has no evaluation.
#[test]
fn a_dispatched_child_may_be_periodic() {
    let mut world = World::default();
    let mut job = parent();
    job.periodic = Some(Periodic {
        enabled: true,
        crons: vec!["@hourly".to_owned()],
        prohibit_overlap: false,
        time_zone: "UTC".to_owned(),
    });
    world.register(&job);
    assert_eq!(world.snapshot().launched_jobs().count(), 0);
    let stamp = world.stamp();
    let outcome = dispatch(&world.snapshot(), &asked(), &stamp).unwrap();
    let made = commit(&mut world, outcome);
    assert_eq!(made.eval_id, None);
    let key = JobKey::new("default", made.job_id.as_str());
    let launched: Vec<_> = world.snapshot().launched_jobs().cloned().collect();
    assert_eq!(launched, std::slice::from_ref(&key));
    let record = world
        .snapshot()
        .periodic_launch(&key)
        .unwrap()
        .value
        .launched;
    assert_eq!(record, Timestamp::from_secs(1_700_000_000));
    assert!(world.snapshot().eval(EvalId::from_random(1)).is_none());
    let again = dispatch(&world.snapshot(), &asked(), &stamp).unwrap();
    assert!(matches!(again, Outcome::Done { made: again, .. } if again.job_id == made.job_id));
}
