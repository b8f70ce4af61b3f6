//! Periodic jobs: their launch records, forced launches, and evaluations of jobs by hand.

use model::{
    ClientStatus, EvalId, Job, JobKey, Namespace, NodePool, Periodic, Timestamp, TriggeredBy,
};
use state::{Entity, Key};
use test_kit::builders;

use super::world::{NOW, World};
use crate::admission::evaluate::{EvaluateRequest, evaluate};
use crate::admission::force::force;
use crate::admission::register::{RegisterRequest, register};
use crate::admission::{Decision, Outcome, Refusal, Stamp};
use crate::writes::Write;

const SECOND: u64 = 1_700_000_000;

fn periodic() -> Job {
    let mut job = builders::batch("p", 1);
    job.periodic = Some(Periodic {
        enabled: true,
        crons: vec!["*/5 * * * *".to_owned()],
        prohibit_overlap: true,
        time_zone: "UTC".to_owned(),
    });
    job
}

fn at(world: &mut World, seconds: u64) -> Stamp {
    Stamp {
        now: Timestamp::from_secs(SECOND + seconds),
        ..world.stamp()
    }
}

fn launched(world: &World) -> u64 {
    let record = world.snapshot().periodic_launch(&periodic().key()).cloned();
    record.unwrap().value.launched.as_secs()
}

fn register_at(world: &mut World, job: &Job, seconds: u64) {
    let stamp = at(world, seconds);
    let request = super::world::request();
    let decision = crate::admission::register(&world.snapshot(), job, &request, &stamp).unwrap();
    world.commit(&super::world::proposal(decision));
}

#[test]
fn what_was_not_to_be_launched_is_launched_from_now_on_and_not_for_the_time_before() {
    let mut world = World::default();
    register_at(&mut world, &periodic(), 0);
    assert_eq!(launched(&world), SECOND);
    // What has nothing to do with time leaves the record as it is: nothing that is due is lost.
    let renamed = Job {
        priority: 60,
        ..periodic()
    };
    register_at(&mut world, &renamed, 1_000);
    assert_eq!(launched(&world), SECOND);
    let mut other = periodic();
    other.periodic.as_mut().unwrap().crons = vec!["@hourly".to_owned()];
    register_at(&mut world, &other, 2_000);
    assert_eq!(launched(&world), SECOND + 2_000);
    world.deregister(&other, false);
    assert_eq!(world.snapshot().launched_jobs().count(), 0);
    register_at(&mut world, &other, 9_000);
    assert_eq!(launched(&world), SECOND + 9_000);
    assert_eq!(world.snapshot().launched_jobs().count(), 1);
    // A clock that is behind does not have it launched again.
    world.deregister(&other, false);
    register_at(&mut world, &other, 3_000);
    assert_eq!(launched(&world), SECOND + 9_000);
    world.deregister(&other, true);
    assert!(world.snapshot().periodic_launch(&other.key()).is_none());
}

#[test]
fn scenario_024_a_forced_launch_overlaps() {
    let mut world = World::default();
    register_at(&mut world, &periodic(), 0);
    let key = periodic().key();
    let mut children = Vec::new();
    for seconds in [30, 31] {
        let stamp = at(&mut world, seconds);
        match force(&world.snapshot(), &key, 1_000, &stamp).unwrap() {
            Outcome::Commit { writes, made } => {
                world.write(&writes);
                let eval = world.snapshot().eval(stamp.eval_id).unwrap().value.clone();
                assert_eq!(eval.triggered_by, TriggeredBy::PeriodicJob);
                children.push(made.job_id);
            }
            done @ Outcome::Done { .. } => panic!("{done:?}"),
        }
        assert_eq!(launched(&world), SECOND + seconds);
        // Asked again, it answers the same.
        let again = force(&world.snapshot(), &key, 1_000, &stamp).unwrap();
        assert!(
            matches!(again, Outcome::Done { made, .. } if Some(&made.job_id) == children.last())
        );
    }
    assert_eq!(children, ["p/periodic-1700000030", "p/periodic-1700000031"]);
    let child = JobKey::new("default", "p/periodic-1700000030");
    let child = world.snapshot().job(&child).unwrap().value.clone();
    assert_eq!((child.parent_id.as_str(), child.periodic), ("p", None));
    // Within one second there is one child.
    let stamp = at(&mut world, 31);
    let refusal = force(&world.snapshot(), &key, 1_000, &stamp).unwrap_err();
    assert!(
        refusal.to_string().contains("within this very second"),
        "{refusal}"
    );
}

#[test]
fn what_cannot_be_forced_says_why() {
    let mut world = World::default();
    let stamp = world.stamp();
    let missing = force(&world.snapshot(), &periodic().key(), 1_000, &stamp);
    assert!(matches!(missing, Err(Refusal::NoSuchJob { .. })));
    world.register(&builders::batch("q", 1));
    let refusal = force(
        &world.snapshot(),
        &JobKey::new("default", "q"),
        1_000,
        &stamp,
    )
    .unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("can't force launch non-periodic job"),
        "{refusal}"
    );
    world.register(&periodic());
    world.deregister(&periodic(), false);
    let refusal = force(&world.snapshot(), &periodic().key(), 1_000, &stamp).unwrap_err();
    assert!(refusal.to_string().contains("is stopped"), "{refusal}");
}

#[test]
fn a_child_stays_one_whatever_its_file_says() {
    let mut world = World::default();
    world.register(&periodic());
    let child = periodic().periodic_child(Timestamp::from_secs(SECOND), NOW);
    world.stored.put_job(&child);
    let edited = Job {
        parent_id: String::new(),
        priority: 70,
        ..child.clone()
    };
    world.register(&edited);
    let stored = world.snapshot().job(&child.key()).unwrap().value.clone();
    assert_eq!((stored.parent_id.as_str(), stored.priority), ("p", 70));
}

fn looked_at(force_reschedule: bool) -> EvaluateRequest {
    EvaluateRequest {
        force_reschedule,
        max_open_evals: 1_000,
    }
}

#[test]
fn at_the_bound_nothing_is_launched_or_evaluated_by_hand() {
    let mut world = World::default();
    register_at(&mut world, &periodic(), 0);
    let job = builders::batch("q", 1);
    world.register(&job);
    let stamp = world.stamp();
    let launched = force(&world.snapshot(), &periodic().key(), 1, &stamp);
    assert_eq!(launched, Err(Refusal::Overloaded { open: 1 }));
    let request = EvaluateRequest {
        max_open_evals: 1,
        ..looked_at(false)
    };
    let evaluated = evaluate(&world.snapshot(), &job.key(), request, &stamp);
    assert_eq!(evaluated, Err(Refusal::Overloaded { open: 1 }));
}

/// A collector that has not seen the evaluation finds the version changed.
#[test]
fn an_evaluation_of_what_could_be_collected_writes_its_version() {
    let version_writes = |job: &Job, stop: bool| {
        let mut world = World::default();
        world.register(job);
        if stop {
            world.deregister(job, false);
        }
        let version = world.snapshot().job(&job.key()).unwrap().value.version;
        let stamp = world.stamp();
        let snapshot = world.snapshot();
        let evaluated = evaluate(&snapshot, &job.key(), looked_at(false), &stamp).unwrap();
        let Outcome::Commit { writes, .. } = evaluated else {
            panic!("{evaluated:?}");
        };
        let of_version = |write: &&Write| matches!(write, Write::Update { key: Key::JobVersion(_, number), .. } if *number == version);
        writes.iter().filter(of_version).count()
    };
    assert_eq!(version_writes(&builders::batch("q", 1), false), 1);
    assert_eq!(version_writes(&builders::service("web", 1), true), 1);
    assert_eq!(version_writes(&builders::service("web", 1), false), 0);
    // A registration that changes nothing does the same.
    let (mut world, job) = (World::default(), builders::batch("q", 1));
    let first = world.register(&job);
    let stamp = world.stamp();
    let request = RegisterRequest {
        max_open_evals: 1_000,
        ..RegisterRequest::default()
    };
    let decided = register(&world.snapshot(), &job, &request, &stamp).unwrap();
    let Decision::Commit(proposal) = decided else {
        panic!("{decided:?}");
    };
    let touched = proposal.writes.iter().filter_map(|write| match write {
        Write::Update { key, .. } => Some(key.clone()),
        _ => None,
    });
    assert_eq!(touched.collect::<Vec<_>>(), [Key::JobVersion(job.key(), 0)]);
    // The job keeps its index.
    world.commit(&proposal);
    assert_eq!(
        world.snapshot().job(&job.key()).unwrap().modify_index,
        first
    );
}

#[test]
fn an_evaluation_by_hand_marks_what_has_failed_and_was_not_replaced() {
    let mut world = World::default();
    let job = builders::service("web", 3);
    world.register(&job);
    let failed = world.place(1, &job, 0);
    let running = world.place(2, &job, 0);
    world.stored.put_status(failed, ClientStatus::Failed);
    world.stored.put_status(running, ClientStatus::Running);
    let marks = |world: &mut World, forced: bool| {
        let stamp = world.stamp();
        match evaluate(&world.snapshot(), &job.key(), looked_at(forced), &stamp).unwrap() {
            Outcome::Commit { writes, .. } => {
                world.write(&writes);
                let snapshot = world.snapshot();
                assert!(snapshot.eval(stamp.eval_id).is_some());
                [failed, running].map(|id| {
                    snapshot
                        .alloc(id)
                        .unwrap()
                        .alloc
                        .transition
                        .force_reschedule
                })
            }
            done @ Outcome::Done { .. } => panic!("{done:?}"),
        }
    };
    assert_eq!(marks(&mut world, false), [false, false]);
    assert_eq!(marks(&mut world, true), [true, false]);
}

#[test]
fn a_parent_is_not_evaluated() {
    let mut world = World::default();
    world.register(&periodic());
    let stamp = world.stamp();
    let refusal = evaluate(
        &world.snapshot(),
        &periodic().key(),
        looked_at(false),
        &stamp,
    )
    .unwrap_err();
    assert!(
        refusal.to_string().contains("can't evaluate periodic job"),
        "{refusal}"
    );
    assert!(world.snapshot().eval(EvalId::from_random(1_001)).is_none());
}

#[test]
fn an_evaluation_by_hand_joins_the_namespace_and_the_node_pool() {
    let mut world = World::default();
    let job = Job {
        namespace: "dev".to_owned(),
        node_pool: "gpu".to_owned(),
        ..builders::batch("report", 1)
    };
    // Nothing of it is live, so both may go.
    world.stored.put_job(&job);
    let decide = |world: &mut World| {
        let stamp = world.stamp();
        evaluate(&world.snapshot(), &job.key(), looked_at(false), &stamp)
    };
    let Err(Refusal::Invalid(errors)) = decide(&mut world) else {
        panic!("evaluated where nothing is");
    };
    let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["namespace", "node_pool"]);
    let namespace = Key::Namespace("dev".to_owned());
    let entity = Entity::Namespace(Box::new(Namespace::named("dev")));
    let in_namespace = world.stored.put(namespace.clone(), entity);
    let pool = Key::NodePool("gpu".to_owned());
    let entity = Entity::NodePool(Box::new(NodePool::named("gpu")));
    let in_pool = world.stored.put(pool.clone(), entity);
    let Outcome::Commit { writes, .. } = decide(&mut world).unwrap() else {
        panic!("it was never evaluated before");
    };
    for (key, modify_index) in [(namespace, in_namespace), (pool, in_pool)] {
        let compare = Write::RequireUnchanged { key, modify_index };
        assert!(writes.contains(&compare), "{compare:?} of {writes:?}");
    }
}
