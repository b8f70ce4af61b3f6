//! Scaling: counts within their limits, one event each, and not while something is rolled out.

use std::collections::BTreeMap;

use model::job::JobType;
use model::{Deployment, DeploymentId, DeploymentStatus, Job, JobKey, Scaling, TriggeredBy};
use state::{Entity, Key};
use test_kit::builders;

use super::world::{NOW, World};
use crate::admission::scale::{ScaleRequest, scale};
use crate::admission::{Made, Outcome, Refusal};

fn web() -> Job {
    let mut job = builders::service("web", 3);
    job.task_groups[0].scaling = Some(Scaling {
        enabled: true,
        min: 2,
        max: 6,
        policy: Default::default(),
    });
    job
}

fn to(count: u32) -> ScaleRequest {
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

fn decide(world: &mut World, request: &ScaleRequest) -> Result<Outcome, Refusal> {
    let stamp = world.stamp();
    scale(&world.snapshot(), request, &stamp)
}

fn commit(world: &mut World, request: &ScaleRequest) -> Made {
    match decide(world, request).unwrap() {
        Outcome::Commit { writes, made } => {
            world.write(&writes);
            made
        }
        done @ Outcome::Done { .. } => panic!("{done:?}"),
    }
}

/// Previous count and count, newest first.
fn events(world: &World) -> Vec<(u32, Option<u32>)> {
    let row = world
        .snapshot()
        .scaling_events(&web().key(), "web")
        .cloned();
    let events = row.map(|row| row.value.events.clone()).unwrap_or_default();
    events
        .iter()
        .map(|event| (event.previous_count, event.count))
        .collect()
}

fn with(job: &Job) -> World {
    let mut world = World::default();
    world.register(job);
    world
}

fn deployment(world: &mut World, status: DeploymentStatus) {
    let deployment = Deployment {
        id: DeploymentId::from_random(1),
        job: web().key(),
        job_version: 0,
        job_modify_index: 0,
        job_create_index: world.snapshot().job(&web().key()).unwrap().create_index,
        status,
        status_description: String::new(),
        groups: BTreeMap::new(),
        eval_priority: 50,
        create_time: NOW,
        modify_time: NOW,
    };
    let entity = Entity::Deployment(Box::new(deployment.clone()));
    world.stored.put(Key::Deployment(deployment.id), entity);
}

#[test]
fn scenario_016_a_job_is_not_scaled_while_it_is_rolled_out_not_even_a_paused_one() {
    let mut world = with(&web());
    for active in [DeploymentStatus::Paused, DeploymentStatus::Running] {
        deployment(&mut world, active);
        let refusal = decide(&mut world, &to(4)).unwrap_err().to_string();
        assert!(
            refusal.contains("job scaling blocked due to active deployment"),
            "{refusal}"
        );
        let deployment = world
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
    assert_eq!(commit(&mut world, &says).eval_id, None);
    deployment(&mut world, DeploymentStatus::Successful);
    commit(&mut world, &to(4));
    let job = world.snapshot().job(&web().key()).unwrap().value.clone();
    assert_eq!((job.task_groups[0].count, job.version), (4, 1));
}

#[test]
fn scenario_017_counts_stay_within_the_policy_and_events_are_newest_first() {
    let mut world = with(&web());
    for (count, problem) in [
        (1, "less than scaling policy minimum: 1 < 2"),
        (7, "greater than scaling policy maximum: 7 > 6"),
    ] {
        let refusal = decide(&mut world, &to(count)).unwrap_err().to_string();
        assert!(refusal.contains(problem), "{refusal}");
    }
    let made = commit(&mut world, &to(6));
    let eval = world
        .snapshot()
        .eval(made.eval_id.unwrap())
        .unwrap()
        .value
        .clone();
    assert_eq!(
        (eval.triggered_by, eval.priority),
        (TriggeredBy::JobScaling, 50)
    );
    commit(&mut world, &to(2));
    assert_eq!(events(&world), [(6, Some(2)), (3, Some(6))]);
    let row = world
        .snapshot()
        .scaling_events(&web().key(), "web")
        .cloned()
        .unwrap();
    let newest = &row.value.events[0];
    assert_eq!((newest.create_index, newest.message.as_str()), (0, "busy"));
    assert_eq!(row.value.events[1].eval_id, made.eval_id);
    assert!(row.value.events[1].create_index > 0);
}

#[test]
fn scenario_018_twenty_events_are_kept() {
    let mut world = with(&web());
    for turn in 0..25 {
        commit(&mut world, &to(2 + turn % 4));
    }
    let kept = events(&world);
    assert_eq!(kept.len(), 20);
    assert_eq!(kept[0], (5, Some(2)));
}

#[test]
fn the_same_count_makes_an_evaluation_and_an_event_but_no_version() {
    let mut world = with(&web());
    let before = world.snapshot().job(&web().key()).unwrap().modify_index;
    let made = commit(&mut world, &to(3));
    assert!(made.eval_id.is_some());
    assert_eq!(made.job_index, Some(before));
    assert_eq!(world.snapshot().job(&web().key()).unwrap().value.version, 0);
    assert_eq!(events(&world), [(3, Some(3))]);
}

#[test]
fn events_of_a_former_job_are_not_those_of_the_next() {
    let mut world = with(&web());
    commit(&mut world, &to(4));
    world.deregister(&web(), true);
    assert_eq!(events(&world), []);
    // Left over, whatever came in between.
    let left = model::ScalingEvents {
        job_create_index: 1,
        events: vec![model::ScalingEvent::default()].into(),
    };
    let key = Key::ScalingEvents(web().key(), "web".to_owned());
    world.stored.put(key, Entity::ScalingEvents(Box::new(left)));
    world.register(&web());
    commit(&mut world, &to(5));
    assert_eq!(events(&world), [(3, Some(5))]);
}

#[test]
fn what_cannot_be_scaled_says_why() {
    let mut world = with(&web());
    let text =
        |world: &mut World, request: &ScaleRequest| decide(world, request).unwrap_err().to_string();
    let nowhere = ScaleRequest {
        group: "db".to_owned(),
        ..to(3)
    };
    assert!(
        text(&mut world, &nowhere)
            .contains("task group \"db\" specified for scaling does not exist in job")
    );
    let nothing = ScaleRequest {
        group: String::new(),
        ..to(3)
    };
    assert!(text(&mut world, &nothing).contains("missing task group name"));
    let both = ScaleRequest {
        error: true,
        ..to(3)
    };
    assert!(text(&mut world, &both).contains("should not contain count if error is true"));
    let stale = ScaleRequest {
        check_index: 77,
        ..to(3)
    };
    assert!(text(&mut world, &stale).contains("Enforcing job modify index 77"));
    let long = ScaleRequest {
        message: "x".repeat(5_000),
        ..to(3)
    };
    assert!(text(&mut world, &long).contains("message: has 5000 bytes"));
    let other = ScaleRequest {
        job: JobKey::new("default", "db"),
        ..to(3)
    };
    assert!(matches!(
        decide(&mut world, &other),
        Err(Refusal::NoSuchJob { .. })
    ));
    world.configure(true);
    assert!(matches!(decide(&mut world, &to(3)), Err(Refusal::Rejected)));

    let mut everywhere = builders::service("web", 1);
    everywhere.job_type = JobType::System;
    let mut world = with(&everywhere);
    assert!(text(&mut world, &to(2)).contains("can only be scaled between 0 and 1"));
    let mut many = builders::service("web", 1);
    let mut other = many.task_groups[0].clone();
    other.name = "other".to_owned();
    other.count = 30_000;
    many.task_groups.push(other);
    let mut world = with(&many);
    assert!(text(&mut world, &to(20_001)).contains("would add up to 50001"));
    assert!(decide(&mut world, &to(20_000)).is_ok());
}

#[test]
fn a_job_whose_pool_is_gone_is_not_brought_back_to_life() {
    let mut job = web();
    job.node_pool = "gpu".to_owned();
    let mut world = World::default();
    // Nothing of it is live, so its pool may go.
    world.write(&[crate::writes::Write::Create {
        key: state::Key::Job(job.key()),
        entity: state::Entity::Job(Box::new(job)),
    }]);
    let refused = decide(&mut world, &to(4)).unwrap_err().to_string();
    assert!(
        refused.contains("nonexistent node pool \"gpu\""),
        "{refused}"
    );
}
