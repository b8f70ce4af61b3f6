//! The check that idempotent requests take effect once, on good and bad histories.

use invariants::Fact;
use model::scaling::{ScalingEvent, ScalingEvents};
use model::{Job, JobKey};
use state::{Entity, Key};
use test_kit::builders;

use crate::testing::{Write, seen};

fn done_twice(history: Vec<Vec<Write>>) -> bool {
    let found = seen(history).violations();
    found
        .iter()
        .any(|violation| violation.fact == Fact::DoneOnce)
}

/// The scaling events of a group by request name, newest first.
fn scaled(requests: &[&str]) -> Vec<Write> {
    let events = requests.iter().map(|request| ScalingEvent {
        message: (*request).to_owned(),
        count: Some(1),
        ..ScalingEvent::default()
    });
    let events = ScalingEvents {
        job_create_index: 1,
        events: events.collect(),
    };
    let key = Key::ScalingEvents(JobKey::new("default", "web"), "web".to_owned());
    vec![(key, Some(Entity::ScalingEvents(Box::new(events))))]
}

#[test]
fn a_scaling_is_done_once() {
    assert!(!done_twice(vec![scaled(&["a"]), scaled(&["b", "a"])]));
    // Events without a name belong to no request.
    assert!(!done_twice(vec![scaled(&["", "a", ""])]));
    assert!(done_twice(vec![scaled(&["a"]), scaled(&["a", "a"])]));
    assert!(done_twice(vec![scaled(&["a", "b", "a"])]));
}

fn child(id: &str, token: &str) -> Job {
    Job {
        dispatch_token: token.to_owned(),
        ..builders::batch(id, 1)
    }
}

fn put(job: &Job) -> Vec<Write> {
    vec![(
        Key::Job(job.key()),
        Some(Entity::Job(Box::new(job.clone()))),
    )]
}

fn delete(job: &Job) -> Vec<Write> {
    vec![(Key::Job(job.key()), None)]
}

#[test]
fn a_dispatch_makes_one_child() {
    let (one, other) = (child("call/1", "a"), child("call/2", "b"));
    let again = child("call/3", "a");
    assert!(!done_twice(vec![put(&one), put(&other)]));
    let stopped = Job {
        stop: true,
        version: 1,
        ..one.clone()
    };
    assert!(!done_twice(vec![put(&one), put(&stopped)]));
    assert!(done_twice(vec![put(&one), put(&other), put(&again)]));
    assert!(done_twice(vec![put(&one), put(&stopped), put(&again)]));
    // A collected child is forgotten.
    assert!(!done_twice(vec![put(&one), delete(&one), put(&again)]));
    // Without a token every dispatch makes a child.
    assert!(!done_twice(vec![
        put(&child("call/1", "")),
        put(&child("call/2", ""))
    ]));
}
