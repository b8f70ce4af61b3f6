//! Periodic jobs: their launch records, forced launches, and evaluations of jobs by hand.

use model::{
    ClientStatus, EvalId, Job, JobKey, Namespace, NodePool, Periodic, Timestamp, TriggeredBy,
};
use state::{Entity, Key, Snapshot, Write};
use test_kit::builders;

use super::fixture::{Fixture, NOW, proposal};
use crate::jobs::evaluate::{EvaluateRequest, evaluate};
use crate::jobs::force::force;
use crate::jobs::register::{RegisterRequest, register};
use crate::jobs::revert::Target;
use crate::jobs::{
    Decision, DeregisterRequest, JobRefusal, Outcome, RequestContext, RevertRequest, deregister,
    revert,
};

const SECOND: u64 = 1_700_000_000;

pub(super) fn periodic() -> Job {
    let mut job = builders::batch("p", 1);
    job.periodic = Some(Periodic {
        enabled: true,
        crons: vec!["*/5 * * * *".to_owned()],
        is_list: false,
        prohibit_overlap: true,
        time_zone: "UTC".to_owned(),
    });
    job
}

fn at(fixture: &mut Fixture, seconds: u64) -> RequestContext {
    RequestContext {
        now: Timestamp::from_secs(SECOND + seconds),
        ..fixture.context()
    }
}

fn launched(fixture: &Fixture) -> u64 {
    let record = fixture
        .snapshot()
        .periodic_launch(&periodic().key())
        .cloned();
    record.unwrap().value.launched.as_secs()
}

fn register_at(fixture: &mut Fixture, job: &Job, seconds: u64) {
    let context = at(fixture, seconds);
    let request = super::fixture::request();
    let decision = crate::jobs::register(&fixture.snapshot(), job, &request, &context).unwrap();
    fixture.commit(&super::fixture::proposal(decision));
}

/// A parent gets no evaluation, by which the retry of another job's request is recognised.
#[test]
fn a_retry_of_a_parents_request_undoes_no_later_one() {
    let (job, other) = (periodic(), super::fixture::changed(&periodic(), 1));
    let request = RegisterRequest {
        check_index: None,
        force: true,
        ..super::fixture::request()
    };
    let registers = |snapshot: &Snapshot, context: &RequestContext| {
        register(snapshot, &other, &request, context).unwrap()
    };
    let reverts = |snapshot: &Snapshot, context: &RequestContext| {
        let asked = RevertRequest {
            job: job.key(),
            to: Target::Version(0),
            prior_version: None,
            eval_priority: 0,
            max_open_evals: 1_000,
        };
        revert(snapshot, &asked, context).unwrap()
    };
    let stops = |snapshot: &Snapshot, context: &RequestContext| {
        let asked = DeregisterRequest {
            job: job.key(),
            purge: false,
            eval_priority: 0,
            no_shutdown_delay: false,
        };
        deregister(snapshot, &asked, context).unwrap()
    };
    type Decide<'a> = &'a dyn Fn(&Snapshot, &RequestContext) -> Decision;
    let cases: [(&str, Decide); 3] = [
        ("registration", &registers),
        ("revert", &reverts),
        ("stop", &stops),
    ];
    for (name, decide) in cases {
        let mut fixture = Fixture::default();
        register_at(&mut fixture, &job, 0);
        register_at(&mut fixture, &super::fixture::changed(&job, 2), 1);
        let context = at(&mut fixture, 2);
        let first = proposal(decide(&fixture.snapshot(), &context));
        let revision = fixture.commit(&first);
        let answer = first.answer(context.eval_id, revision);
        assert_eq!((answer.eval_id, answer.changed), (None, true), "{name}");
        register_at(&mut fixture, &super::fixture::changed(&job, 3), 3);
        let again = decide(&fixture.snapshot(), &context);
        assert_eq!(again, Decision::Done(answer), "{name}");
    }
}

/// The first attempt and its repetition answer alike.
#[test]
fn registrations_and_reverts_name_the_first_launch() {
    let (mut fixture, job) = (Fixture::default(), periodic());
    let first = Some(Timestamp::from_secs(1_700_000_100));
    let context = fixture.context();
    let request = super::fixture::request();
    let decide = |fixture: &Fixture| register(&fixture.snapshot(), &job, &request, &context);
    let registered = proposal(decide(&fixture).unwrap());
    assert_eq!(registered.next_launch, first);
    let revision = fixture.commit(&registered);
    let answer = registered.answer(context.eval_id, revision);
    assert_eq!(answer.next_launch, first);
    assert_eq!(decide(&fixture).unwrap(), Decision::Done(answer));

    // A stopped job is not launched, and one that is reverted is.
    let stop = DeregisterRequest {
        job: job.key(),
        purge: false,
        eval_priority: 0,
        no_shutdown_delay: false,
    };
    let context = fixture.context();
    let stopped = proposal(deregister(&fixture.snapshot(), &stop, &context).unwrap());
    assert_eq!(stopped.next_launch, None);
    fixture.commit(&stopped);
    let request = RevertRequest {
        job: job.key(),
        to: Target::Version(0),
        prior_version: None,
        eval_priority: 0,
        max_open_evals: 1_000,
    };
    let context = fixture.context();
    let reverted = proposal(revert(&fixture.snapshot(), &request, &context).unwrap());
    assert_eq!(reverted.next_launch, first);
}

#[test]
fn a_job_that_becomes_periodic_is_launched_from_now_on() {
    let mut fixture = Fixture::default();
    register_at(&mut fixture, &periodic(), 0);
    assert_eq!(launched(&fixture), SECOND);
    // Changes unrelated to time leave the record as it is: no due launch is lost.
    let renamed = Job {
        priority: 60,
        ..periodic()
    };
    register_at(&mut fixture, &renamed, 1_000);
    assert_eq!(launched(&fixture), SECOND);
    let mut other = periodic();
    other.periodic.as_mut().unwrap().crons = vec!["@hourly".to_owned()];
    register_at(&mut fixture, &other, 2_000);
    assert_eq!(launched(&fixture), SECOND + 2_000);
    fixture.deregister(&other, false);
    assert_eq!(fixture.snapshot().launched_jobs().count(), 0);
    register_at(&mut fixture, &other, 9_000);
    assert_eq!(launched(&fixture), SECOND + 9_000);
    assert_eq!(fixture.snapshot().launched_jobs().count(), 1);
    // A clock that is behind does not have it launched again.
    fixture.deregister(&other, false);
    register_at(&mut fixture, &other, 3_000);
    assert_eq!(launched(&fixture), SECOND + 9_000);
    fixture.deregister(&other, true);
    assert!(fixture.snapshot().periodic_launch(&other.key()).is_none());
}

#[test]
fn scenario_024_a_forced_launch_overlaps() {
    let mut fixture = Fixture::default();
    register_at(&mut fixture, &periodic(), 0);
    let key = periodic().key();
    let mut children = Vec::new();
    for seconds in [30, 31] {
        let context = at(&mut fixture, seconds);
        match force(&fixture.snapshot(), &key, 1_000, &context).unwrap() {
            Outcome::Commit {
                writes, receipt, ..
            } => {
                fixture.write(&writes);
                let eval = fixture
                    .snapshot()
                    .eval(context.eval_id)
                    .unwrap()
                    .value
                    .clone();
                assert_eq!(eval.triggered_by, TriggeredBy::PeriodicJob);
                children.push(receipt.job_id);
            }
            done @ Outcome::Done { .. } => panic!("{done:?}"),
        }
        assert_eq!(launched(&fixture), SECOND + seconds);
        // Asked again, it answers the same.
        let again = force(&fixture.snapshot(), &key, 1_000, &context).unwrap();
        assert!(
            matches!(again, Outcome::Done { receipt, .. } if Some(&receipt.job_id) == children.last())
        );
    }
    assert_eq!(children, ["p/periodic-1700000030", "p/periodic-1700000031"]);
    let child = JobKey::new("default", "p/periodic-1700000030");
    let child = fixture.snapshot().job(&child).unwrap().value.clone();
    assert_eq!((child.parent_id.as_str(), child.periodic), ("p", None));
    // Within one second there is one child.
    let context = at(&mut fixture, 31);
    let refusal = force(&fixture.snapshot(), &key, 1_000, &context).unwrap_err();
    assert!(
        refusal.to_string().contains("within this very second"),
        "{refusal}"
    );
}

#[test]
fn a_refused_launch_says_why() {
    let mut fixture = Fixture::default();
    let context = fixture.context();
    let missing = force(&fixture.snapshot(), &periodic().key(), 1_000, &context);
    assert!(matches!(missing, Err(JobRefusal::NoSuchJob { .. })));
    fixture.register(&builders::batch("q", 1));
    let refusal = force(
        &fixture.snapshot(),
        &JobKey::new("default", "q"),
        1_000,
        &context,
    )
    .unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("can't force launch non-periodic job"),
        "{refusal}"
    );
    fixture.register(&periodic());
    fixture.deregister(&periodic(), false);
    let refusal = force(&fixture.snapshot(), &periodic().key(), 1_000, &context).unwrap_err();
    assert!(refusal.to_string().contains("is stopped"), "{refusal}");
}

#[test]
fn a_child_stays_one_whatever_its_file_says() {
    let mut fixture = Fixture::default();
    fixture.register(&periodic());
    let child = periodic().periodic_child(Timestamp::from_secs(SECOND), NOW);
    fixture.stored.put_job(&child);
    let edited = Job {
        parent_id: String::new(),
        priority: 70,
        ..child.clone()
    };
    fixture.register(&edited);
    let stored = fixture.snapshot().job(&child.key()).unwrap().value.clone();
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
    let mut fixture = Fixture::default();
    register_at(&mut fixture, &periodic(), 0);
    let job = builders::batch("q", 1);
    fixture.register(&job);
    let context = fixture.context();
    let launched = force(&fixture.snapshot(), &periodic().key(), 1, &context);
    assert_eq!(launched, Err(JobRefusal::Overloaded { open: 1 }));
    let request = EvaluateRequest {
        max_open_evals: 1,
        ..looked_at(false)
    };
    let evaluated = evaluate(&fixture.snapshot(), &job.key(), request, &context);
    assert_eq!(evaluated, Err(JobRefusal::Overloaded { open: 1 }));
}

/// A collector that has not seen the evaluation finds the version changed.
#[test]
fn an_evaluation_of_a_collectable_job_writes_its_version() {
    let version_writes = |job: &Job, stop: bool| {
        let mut fixture = Fixture::default();
        fixture.register(job);
        if stop {
            fixture.deregister(job, false);
        }
        let version = fixture.snapshot().job(&job.key()).unwrap().value.version;
        let context = fixture.context();
        let snapshot = fixture.snapshot();
        let evaluated = evaluate(&snapshot, &job.key(), looked_at(false), &context).unwrap();
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
    let (mut fixture, job) = (Fixture::default(), builders::batch("q", 1));
    let first = fixture.register(&job);
    let context = fixture.context();
    let request = RegisterRequest {
        max_open_evals: 1_000,
        ..RegisterRequest::default()
    };
    let decided = register(&fixture.snapshot(), &job, &request, &context).unwrap();
    let Decision::Commit(proposal) = decided else {
        panic!("{decided:?}");
    };
    let touched = proposal.writes.iter().filter_map(|write| match write {
        Write::Update { key, .. } => Some(key.clone()),
        _ => None,
    });
    assert_eq!(touched.collect::<Vec<_>>(), [Key::JobVersion(job.key(), 0)]);
    // The job keeps its index.
    fixture.commit(&proposal);
    assert_eq!(
        fixture.snapshot().job(&job.key()).unwrap().modify_index,
        first
    );
}

#[test]
fn an_evaluation_by_hand_marks_failed_allocations_without_a_replacement() {
    let mut fixture = Fixture::default();
    let job = builders::service("web", 3);
    fixture.register(&job);
    let failed = fixture.place(1, &job, 0);
    let running = fixture.place(2, &job, 0);
    fixture.stored.put_status(failed, ClientStatus::Failed);
    fixture.stored.put_status(running, ClientStatus::Running);
    let marks = |fixture: &mut Fixture, forced: bool| {
        let context = fixture.context();
        match evaluate(&fixture.snapshot(), &job.key(), looked_at(forced), &context).unwrap() {
            Outcome::Commit { writes, .. } => {
                fixture.write(&writes);
                let snapshot = fixture.snapshot();
                assert!(snapshot.eval(context.eval_id).is_some());
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
    assert_eq!(marks(&mut fixture, false), [false, false]);
    assert_eq!(marks(&mut fixture, true), [true, false]);
}

#[test]
fn a_parent_is_not_evaluated() {
    let mut fixture = Fixture::default();
    fixture.register(&periodic());
    let context = fixture.context();
    let refusal = evaluate(
        &fixture.snapshot(),
        &periodic().key(),
        looked_at(false),
        &context,
    )
    .unwrap_err();
    assert!(
        refusal.to_string().contains("can't evaluate periodic job"),
        "{refusal}"
    );
    assert!(
        fixture
            .snapshot()
            .eval(EvalId::from_random(1_001))
            .is_none()
    );
}

#[test]
fn an_evaluation_by_hand_joins_the_namespace_and_the_node_pool() {
    let mut fixture = Fixture::default();
    let job = Job {
        namespace: "dev".to_owned(),
        node_pool: "gpu".to_owned(),
        ..builders::batch("report", 1)
    };
    // Nothing of it is live, so both may go.
    fixture.stored.put_job(&job);
    let decide = |fixture: &mut Fixture| {
        let context = fixture.context();
        evaluate(&fixture.snapshot(), &job.key(), looked_at(false), &context)
    };
    let Err(JobRefusal::Invalid(errors)) = decide(&mut fixture) else {
        panic!("evaluated where nothing is");
    };
    let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["namespace", "node_pool"]);
    let namespace = Key::Namespace("dev".to_owned());
    let entity = Entity::Namespace(Box::new(Namespace::named("dev")));
    let in_namespace = fixture.stored.put(namespace.clone(), entity);
    let pool = Key::NodePool("gpu".to_owned());
    let entity = Entity::NodePool(Box::new(NodePool::named("gpu")));
    let in_pool = fixture.stored.put(pool.clone(), entity);
    let Outcome::Commit { writes, .. } = decide(&mut fixture).unwrap() else {
        panic!("it was never evaluated before");
    };
    for (key, modify_index) in [(namespace, in_namespace), (pool, in_pool)] {
        let compare = Write::RequireUnchanged { key, modify_index };
        assert!(writes.contains(&compare), "{compare:?} of {writes:?}");
    }
}
