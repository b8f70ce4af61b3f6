//! Deregister: stop and purge.

use model::{AllocId, ClientStatus, Job, JobKey, JobType, TriggeredBy};
use state::{JobStatus, Key, Write};
use test_kit::builders;

use super::fixture::{Fixture, changed, proposal};
use crate::jobs::evaluate::MAX_MARKED;
use crate::jobs::shutdown_delay::skip_delays;
use crate::jobs::{Decision, DeregisterRequest, deregister};

fn stop(job: &JobKey) -> DeregisterRequest {
    DeregisterRequest {
        job: job.clone(),
        purge: false,
        eval_priority: 0,
        no_shutdown_delay: false,
    }
}

#[test]
fn scenario_014_an_unknown_job_is_no_error_and_writes_nothing() {
    for purge in [false, true] {
        let mut fixture = Fixture::default();
        let context = fixture.context();
        let request = DeregisterRequest {
            purge,
            ..stop(&JobKey::new("default", "ghost"))
        };
        let decision = deregister(&fixture.snapshot(), &request, &context).unwrap();
        assert_eq!(decision, Decision::NoSuchJob);
    }
}

#[test]
fn a_stop_is_a_new_version_that_is_stopped() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    fixture.register(&job);
    let revision = fixture.deregister(&job, false);
    let snapshot = fixture.snapshot();
    let stored = snapshot.job(&job.key()).unwrap();
    assert_eq!((stored.value.stop, stored.value.version), (true, 1));
    assert_eq!(stored.modify_index, revision);
    assert_eq!(
        snapshot.job_version(&job.key(), 1).unwrap().value,
        stored.value
    );
}

#[test]
fn a_job_that_is_stopped_already_is_only_looked_at_again() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    fixture.register(&job);
    let stopped_at = fixture.deregister(&job, false);
    let context = fixture.context();
    let again = proposal(deregister(&fixture.snapshot(), &stop(&job.key()), &context).unwrap());
    assert!(!again.changed);
    fixture.commit(&again);
    assert_eq!(
        fixture.snapshot().job(&job.key()).unwrap().modify_index,
        stopped_at
    );
    assert_eq!(fixture.kept(&job.key()), [0, 1]);
}

#[test]
fn scenario_015_the_evaluation_is_of_type_service_whatever_the_job() {
    for (asked, want) in [(0, 70), (90, 90)] {
        let mut fixture = Fixture::default();
        let mut job = builders::batch("crunch", 3);
        job.priority = 70;
        fixture.register(&job);
        let context = fixture.context();
        let request = DeregisterRequest {
            eval_priority: asked,
            ..stop(&job.key())
        };
        let decision = deregister(&fixture.snapshot(), &request, &context).unwrap();
        fixture.commit(&proposal(decision));
        let snapshot = fixture.snapshot();
        let eval = &snapshot.eval(context.eval_id).unwrap().value;
        assert_eq!((eval.job_type, eval.priority), (JobType::Service, want));
        assert_eq!(eval.triggered_by, TriggeredBy::JobDeregister);
    }
}

#[test]
fn scenario_013_a_purge_forgets_the_job_and_leaves_its_allocations_to_be_stopped() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 2));
    fixture.register(&job);
    fixture.register(&changed(&job, 1));
    fixture.mark_stable(&job, 0);
    fixture.register(&changed(&job, 2));
    let allocs = [fixture.place(1, &job, 0), fixture.place(2, &job, 1)];
    fixture.stored.put_status(allocs[0], ClientStatus::Running);
    let node_id = fixture.snapshot().alloc(allocs[0]).unwrap().alloc.node_id;

    let context = fixture.context();
    let request = DeregisterRequest {
        purge: true,
        ..stop(&job.key())
    };
    let purge = proposal(deregister(&fixture.snapshot(), &request, &context).unwrap());
    let revision = fixture.commit(&purge);
    let snapshot = fixture.snapshot();
    assert!(snapshot.job(&job.key()).is_none());
    // Versions that run are kept, so that nodes can stop their allocations.
    assert_eq!(fixture.kept(&job.key()), [0, 1]);
    assert!(!snapshot.is_stable(&job.key(), 0));
    // The scheduler finds no job behind this evaluation and stops what runs; until it has ended,
    // the node's capacity counts as taken.
    assert!(
        !snapshot
            .eval(context.eval_id)
            .unwrap()
            .value
            .status
            .is_terminal()
    );
    assert_eq!(snapshot.allocs_by_job(&job.key()).count(), 2);
    assert!(
        snapshot
            .allocs_by_job(&job.key())
            .all(|view| !view.is_terminal())
    );
    assert!(snapshot.usage(node_id).is_some());
    assert_eq!(
        purge.answer(context.eval_id, revision).job_modify_index,
        revision
    );
}

#[test]
fn a_purge_takes_the_versions_that_nothing_runs_any_more() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 2));
    fixture.register(&job);
    fixture.register(&changed(&job, 1));
    for (number, status) in [(1, ClientStatus::Complete), (2, ClientStatus::Failed)] {
        let alloc_id = fixture.place(number, &job, 0);
        fixture.stored.put_status(alloc_id, status);
    }
    fixture.deregister(&job, true);
    assert_eq!(fixture.kept(&job.key()), [0_u64; 0]);
}

#[test]
fn a_stopped_job_can_be_purged() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 2));
    fixture.register(&job);
    fixture.deregister(&job, false);
    fixture.deregister(&job, true);
    assert!(fixture.snapshot().job(&job.key()).is_none());
}

#[test]
fn a_job_that_comes_back_does_not_use_numbers_that_its_ancestors_allocations_name() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 2));
    fixture.register(&job);
    fixture.register(&changed(&job, 1));
    fixture.place(1, &job, 1);
    fixture.deregister(&job, true);
    let revision = fixture.register(&job);
    let snapshot = fixture.snapshot();
    let stored = snapshot.job(&job.key()).unwrap();
    assert_eq!((stored.value.version, stored.create_index), (2, revision));
    assert_eq!(snapshot.job_status(&job.key()), Some(JobStatus::Running));

    let mut fixture = Fixture::default();
    fixture.register(&job);
    fixture.deregister(&job, true);
    fixture.register(&job);
    let snapshot = fixture.snapshot();
    assert_eq!(
        snapshot.job(&job.key()).unwrap().value.version,
        0,
        "nothing names a version"
    );
}

#[test]
fn an_attempt_whose_answer_was_lost_is_answered_without_writing_again() {
    for purge in [false, true] {
        let (mut fixture, job) = (Fixture::default(), builders::service("web", 2));
        fixture.register(&job);
        let context = fixture.context();
        let request = DeregisterRequest {
            purge,
            ..stop(&job.key())
        };
        let first = proposal(deregister(&fixture.snapshot(), &request, &context).unwrap());
        let revision = fixture.commit(&first);
        let again = deregister(&fixture.snapshot(), &request, &context).unwrap();
        assert_eq!(
            again,
            Decision::Done(first.answer(context.eval_id, revision)),
            "purge: {purge}"
        );
    }
}

#[test]
fn a_stop_that_is_retried_after_a_purge_is_not_answered_with_an_older_version() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 2));
    fixture.register(&job);
    let alloc_id = fixture.place(1, &job, 0);
    fixture.stored.put_status(alloc_id, ClientStatus::Running);
    let (context, request) = (fixture.context(), stop(&job.key()));
    let first = proposal(deregister(&fixture.snapshot(), &request, &context).unwrap());
    let revision = fixture.commit(&first);
    fixture.deregister(&job, true);
    assert_eq!(fixture.kept(&job.key()), [0]);
    let again = deregister(&fixture.snapshot(), &request, &context).unwrap();
    let answer = first.answer(context.eval_id, revision);
    assert_eq!((answer.job_modify_index, answer.changed), (revision, true));
    assert_eq!(again, Decision::Done(answer));
}

#[test]
fn every_write_but_a_new_name_compares_its_object() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 2));
    for n in 0..10 {
        fixture.register(&changed(&job, n));
    }
    let context = fixture.context();
    let request = DeregisterRequest {
        purge: true,
        ..stop(&job.key())
    };
    let purge = proposal(deregister(&fixture.snapshot(), &request, &context).unwrap());
    for write in &purge.writes {
        match write {
            Write::Create { key, .. } => assert_eq!(key, &Key::Eval(context.eval_id)),
            Write::Update { modify_index, .. }
            | Write::Delete { modify_index, .. }
            | Write::RequireUnchanged { modify_index, .. } => assert_ne!(*modify_index, 0),
            // Records that would outlive the job must not be created meanwhile.
            Write::RequireAbsent { key } => {
                assert!(
                    matches!(key, Key::JobTags(_) | Key::JobStable(..)),
                    "a purge does not care for {key:?}"
                );
            }
        }
    }
}

/// Returns the numbers of the allocations, of the first `count`, that skip their delays.
fn skipping(fixture: &Fixture, count: u128) -> Vec<u128> {
    let snapshot = fixture.snapshot();
    let skips = |number: &u128| {
        let view = snapshot.alloc(AllocId::from_random(*number)).unwrap();
        view.alloc.transition.no_shutdown_delay
    };
    (1..=count).filter(skips).collect()
}

fn delayed(count: u32) -> Job {
    let mut job = builders::service("web", count);
    job.task_groups[0].tasks[0].shutdown_delay = std::time::Duration::from_secs(30);
    job
}

#[test]
fn a_stop_without_shutdown_delay_marks_the_allocations_that_would_wait() {
    for purge in [false, true] {
        let (mut fixture, job) = (Fixture::default(), delayed(4));
        fixture.register(&job);
        for number in 1..=2 {
            fixture.place(number, &job, 0);
        }
        let ended = fixture.place(3, &job, 0);
        fixture.stored.put_status(ended, ClientStatus::Complete);
        let other = builders::service("other", 1);
        fixture.register(&other);
        fixture.place(4, &other, 0);
        let context = fixture.context();
        let request = DeregisterRequest {
            purge,
            no_shutdown_delay: true,
            ..stop(&job.key())
        };
        let decision = deregister(&fixture.snapshot(), &request, &context).unwrap();
        fixture.commit(&proposal(decision));
        assert_eq!(skipping(&fixture, 4), [1, 2], "purge: {purge}");
    }
    // Without a delay there is nothing to skip.
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 1));
    fixture.register(&job);
    fixture.place(1, &job, 0);
    let context = fixture.context();
    let request = DeregisterRequest {
        no_shutdown_delay: true,
        ..stop(&job.key())
    };
    let decision = deregister(&fixture.snapshot(), &request, &context).unwrap();
    fixture.commit(&proposal(decision));
    assert!(skipping(&fixture, 1).is_empty());
}

#[test]
fn further_allocations_are_marked_after_the_stop_and_those_of_a_later_start_are_not() {
    let (mut fixture, job) = (Fixture::default(), delayed(300));
    fixture.register(&job);
    let count = MAX_MARKED as u128 + 30;
    for number in 1..=count {
        fixture.place(number, &job, 0);
    }
    let context = fixture.context();
    let request = DeregisterRequest {
        no_shutdown_delay: true,
        ..stop(&job.key())
    };
    let decision = deregister(&fixture.snapshot(), &request, &context).unwrap();
    let stopped_index = fixture.commit(&proposal(decision));
    assert_eq!(skipping(&fixture, count).len(), MAX_MARKED);
    fixture.place(count + 1, &job, 0);
    let marks = |fixture: &Fixture| {
        skip_delays(&fixture.snapshot(), &job.key(), stopped_index, context.now)
    };
    let further = marks(&fixture);
    assert_eq!(further.len(), 30);
    fixture.write(&further);
    assert!(marks(&fixture).is_empty());
    let all: Vec<u128> = (1..=count).collect();
    assert_eq!(skipping(&fixture, count + 1), all);
}
