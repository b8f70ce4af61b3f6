//! Scaling: counts within their limits, one event each, and not while something is rolled out.

use std::collections::BTreeMap;

use model::job::JobType;
use model::{
    ClientStatus, Deployment, DeploymentId, DeploymentStatus, Job, JobKey, Scaling, TriggeredBy,
};
use state::{Entity, Key};
use test_kit::builders;

use super::fixture::{Fixture, NOW};
use crate::jobs::scale::{ScaleRequest, scale};
use crate::jobs::{JobRefusal, Outcome, Receipt};

pub(super) fn web() -> Job {
    let mut job = builders::service("web", 3);
    job.task_groups[0].scaling = Some(Scaling {
        enabled: true,
        min: 2,
        max: 6,
        policy: Default::default(),
    });
    job
}

pub(super) fn to(count: u32) -> ScaleRequest {
    ScaleRequest {
        job: JobKey::new("default", "web"),
        group: "web".to_owned(),
        count: Some(count),
        message: "busy".to_owned(),
        error: false,
        meta: BTreeMap::new(),
        check_index: 0,
        max_open_evals: 1_000,
    }
}

fn decide(fixture: &mut Fixture, request: &ScaleRequest) -> Result<Outcome, JobRefusal> {
    let context = fixture.context();
    scale(&fixture.snapshot(), request, &context)
}

fn commit(fixture: &mut Fixture, request: &ScaleRequest) -> Receipt {
    match decide(fixture, request).unwrap() {
        Outcome::Commit {
            writes, receipt, ..
        } => {
            fixture.write(&writes);
            receipt
        }
        done @ Outcome::Done { .. } => panic!("{done:?}"),
    }
}

/// Previous count and count, newest first.
fn events(fixture: &Fixture) -> Vec<(u32, Option<u32>)> {
    let row = fixture
        .snapshot()
        .scaling_events(&web().key(), "web")
        .cloned();
    let events = row.map(|row| row.value.events.clone()).unwrap_or_default();
    events
        .iter()
        .map(|event| (event.previous_count, event.count))
        .collect()
}

pub(super) fn with(job: &Job) -> Fixture {
    let mut fixture = Fixture::default();
    fixture.register(job);
    fixture
}

fn deployment(fixture: &mut Fixture, status: DeploymentStatus) {
    let deployment = Deployment {
        id: DeploymentId::from_random(1),
        job: web().key(),
        job_version: 0,
        job_modify_index: 0,
        job_create_index: fixture.snapshot().job(&web().key()).unwrap().create_index,
        status,
        status_description: String::new(),
        groups: BTreeMap::new(),
        eval_priority: 50,
        create_time: NOW,
        modify_time: NOW,
    };
    let entity = Entity::Deployment(Box::new(deployment.clone()));
    fixture.stored.put(Key::Deployment(deployment.id), entity);
}

#[test]
fn scenario_016_a_job_is_not_scaled_while_it_is_rolled_out_not_even_a_paused_one() {
    let mut fixture = with(&web());
    for active in [DeploymentStatus::Paused, DeploymentStatus::Running] {
        deployment(&mut fixture, active);
        let refusal = decide(&mut fixture, &to(4)).unwrap_err().to_string();
        assert!(
            refusal.contains("job scaling blocked due to active deployment"),
            "{refusal}"
        );
        let deployment = fixture
            .snapshot()
            .deployments_by_job(&web().key())
            .next()
            .unwrap()
            .value
            .id;
        assert!(
            refusal.contains(&format!("'kafila deployment fail {deployment}'")),
            "{refusal}"
        );
    }
    // Saying something is possible all the same.
    let says = ScaleRequest {
        count: None,
        ..to(0)
    };
    assert_eq!(commit(&mut fixture, &says).eval_id, None);
    deployment(&mut fixture, DeploymentStatus::Successful);
    commit(&mut fixture, &to(4));
    let job = fixture.snapshot().job(&web().key()).unwrap().value.clone();
    assert_eq!((job.task_groups[0].count, job.version), (4, 1));
}

#[test]
fn scenario_017_counts_stay_within_the_policy_and_events_are_newest_first() {
    let mut fixture = with(&web());
    for (count, problem) in [
        (1, "less than scaling policy minimum: 1 < 2"),
        (7, "greater than scaling policy maximum: 7 > 6"),
    ] {
        let refusal = decide(&mut fixture, &to(count)).unwrap_err().to_string();
        assert!(refusal.contains(problem), "{refusal}");
    }
    let receipt = commit(&mut fixture, &to(6));
    let eval = fixture
        .snapshot()
        .eval(receipt.eval_id.unwrap())
        .unwrap()
        .value
        .clone();
    assert_eq!(
        (eval.triggered_by, eval.priority),
        (TriggeredBy::JobScaling, 50)
    );
    commit(&mut fixture, &to(2));
    assert_eq!(events(&fixture), [(6, Some(2)), (3, Some(6))]);
    let row = fixture
        .snapshot()
        .scaling_events(&web().key(), "web")
        .cloned()
        .unwrap();
    let newest = &row.value.events[0];
    assert_eq!((newest.create_index, newest.message.as_str()), (0, "busy"));
    assert_eq!(row.value.events[1].eval_id, receipt.eval_id);
    assert!(row.value.events[1].create_index > 0);
}

#[test]
fn scenario_018_twenty_events_are_kept() {
    let mut fixture = with(&web());
    for turn in 0..25 {
        commit(&mut fixture, &to(2 + turn % 4));
    }
    let kept = events(&fixture);
    assert_eq!(kept.len(), 20);
    assert_eq!(kept[0], (5, Some(2)));
}

#[test]
fn the_same_count_makes_an_evaluation_and_an_event_but_no_version() {
    let mut fixture = with(&web());
    let before = fixture.snapshot().job(&web().key()).unwrap().modify_index;
    let receipt = commit(&mut fixture, &to(3));
    assert!(receipt.eval_id.is_some());
    assert_eq!(receipt.job_index, Some(before));
    assert_eq!(
        fixture.snapshot().job(&web().key()).unwrap().value.version,
        0
    );
    assert_eq!(events(&fixture), [(3, Some(3))]);
}

#[test]
fn a_retry_is_not_answered_with_an_older_version_that_a_purge_left() {
    let mut fixture = with(&web());
    let alloc_id = fixture.place(1, &web(), 0);
    fixture.stored.put_status(alloc_id, ClientStatus::Running);
    let context = fixture.context();
    let Outcome::Commit { writes, .. } = scale(&fixture.snapshot(), &to(4), &context).unwrap()
    else {
        panic!("nothing to commit")
    };
    let index = fixture.write(&writes);
    let job_index = |fixture: &Fixture| match scale(&fixture.snapshot(), &to(4), &context).unwrap()
    {
        Outcome::Done { receipt, .. } => receipt.job_index.unwrap_or(index),
        committed @ Outcome::Commit { .. } => panic!("{committed:?}"),
    };
    assert_eq!(job_index(&fixture), index);
    fixture.deregister(&web(), true);
    assert_eq!(fixture.kept(&web().key()), [0]);
    assert_eq!(job_index(&fixture), index);
}

#[test]
fn events_of_a_former_job_are_not_those_of_the_next() {
    let mut fixture = with(&web());
    commit(&mut fixture, &to(4));
    fixture.deregister(&web(), true);
    assert_eq!(events(&fixture), []);
    // Left over, whatever came in between.
    let left = model::ScalingEvents {
        job_create_index: 1,
        events: vec![model::ScalingEvent::default()].into(),
    };
    let key = Key::ScalingEvents(web().key(), "web".to_owned());
    fixture
        .stored
        .put(key, Entity::ScalingEvents(Box::new(left)));
    fixture.register(&web());
    commit(&mut fixture, &to(5));
    assert_eq!(events(&fixture), [(3, Some(5))]);
}

#[test]
fn a_refused_scaling_says_why() {
    let mut fixture = with(&web());
    let text = |fixture: &mut Fixture, request: &ScaleRequest| {
        decide(fixture, request).unwrap_err().to_string()
    };
    let nowhere = ScaleRequest {
        group: "db".to_owned(),
        ..to(3)
    };
    assert!(
        text(&mut fixture, &nowhere)
            .contains("task group \"db\" specified for scaling does not exist in job")
    );
    let nothing = ScaleRequest {
        group: String::new(),
        ..to(3)
    };
    assert!(text(&mut fixture, &nothing).contains("missing task group name"));
    let both = ScaleRequest {
        error: true,
        ..to(3)
    };
    assert!(text(&mut fixture, &both).contains("should not contain count if error is true"));
    let stale = ScaleRequest {
        check_index: 77,
        ..to(3)
    };
    assert!(text(&mut fixture, &stale).contains("Enforcing job modify index 77"));
    let long = ScaleRequest {
        message: "x".repeat(5_000),
        ..to(3)
    };
    assert!(text(&mut fixture, &long).contains("message: has 5000 bytes"));
    let other = ScaleRequest {
        job: JobKey::new("default", "db"),
        ..to(3)
    };
    assert!(matches!(
        decide(&mut fixture, &other),
        Err(JobRefusal::NoSuchJob { .. })
    ));
    fixture.configure(true);
    assert!(matches!(
        decide(&mut fixture, &to(3)),
        Err(JobRefusal::Rejected)
    ));

    let mut everywhere = builders::service("web", 1);
    everywhere.job_type = JobType::System;
    let mut fixture = with(&everywhere);
    assert!(text(&mut fixture, &to(2)).contains("can only be scaled between 0 and 1"));
    let mut many = builders::service("web", 1);
    let mut other = many.task_groups[0].clone();
    other.name = "other".to_owned();
    other.count = 30_000;
    many.task_groups.push(other);
    let mut fixture = with(&many);
    assert!(text(&mut fixture, &to(20_001)).contains("would add up to 50001"));
    assert!(decide(&mut fixture, &to(20_000)).is_ok());
}

#[test]
fn a_job_whose_pool_is_gone_is_not_brought_back_to_life() {
    let mut job = web();
    job.node_pool = "gpu".to_owned();
    let mut fixture = Fixture::default();
    // Nothing of it is live, so its pool may go.
    fixture.write(&[state::Write::Create {
        key: state::Key::Job(job.key()),
        entity: state::Entity::Job(Box::new(job)),
    }]);
    let refused = decide(&mut fixture, &to(4)).unwrap_err().to_string();
    assert!(
        refused.contains("nonexistent node pool \"gpu\""),
        "{refused}"
    );
}
