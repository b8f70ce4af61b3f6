//! Work: requests that are refused while etcd is nearly full, and those that are not.

use model::JobKey;
use test_kit::builders;

use super::fixture::{Fixture, request};
use super::{dispatching, launching, scaling, stopping};
use crate::jobs::dispatch::dispatch;
use crate::jobs::evaluate::{EvaluateRequest, evaluate};
use crate::jobs::force::force;
use crate::jobs::revert::Target;
use crate::jobs::scale::{ScaleRequest, scale};
use crate::jobs::stop_alloc::stop_alloc;
use crate::jobs::{DeregisterRequest, RevertRequest, deregister, register, revert};

#[test]
fn registrations_and_reverts_add_work_and_deregistrations_do_not() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 1));
    let context = fixture.context();
    let decide = |fixture: &Fixture| {
        let decided = register(&fixture.snapshot(), &job, &request(), &context);
        decided.unwrap()
    };
    let registered = decide(&fixture);
    assert!(registered.adds_work());
    fixture.commit(&super::fixture::proposal(registered));
    assert!(!decide(&fixture).adds_work(), "it is committed already");

    for purge in [false, true] {
        let request = DeregisterRequest {
            job: job.key(),
            purge,
            eval_priority: 0,
            no_shutdown_delay: false,
        };
        let context = fixture.context();
        let decided = deregister(&fixture.snapshot(), &request, &context).unwrap();
        assert!(!decided.adds_work());
    }
    fixture.deregister(&job, false);
    let request = RevertRequest {
        job: job.key(),
        to: Target::Version(0),
        prior_version: None,
        eval_priority: 0,
        max_open_evals: 1_000,
    };
    let context = fixture.context();
    let decided = revert(&fixture.snapshot(), &request, &context).unwrap();
    assert!(decided.adds_work());
}

#[test]
fn only_a_larger_count_adds_work() {
    let mut fixture = scaling::with(&scaling::web());
    let event = ScaleRequest {
        count: None,
        ..scaling::to(0)
    };
    for (request, adds_work) in [
        (scaling::to(2), false),
        (scaling::to(3), false),
        (scaling::to(4), true),
        (event, false),
    ] {
        let context = fixture.context();
        let decided = scale(&fixture.snapshot(), &request, &context).unwrap();
        assert_eq!(decided.adds_work(), adds_work, "{request:?}");
    }
}

#[test]
fn children_add_work_and_evaluations_of_accepted_jobs_do_not() {
    let mut parent = dispatching::with_parent();
    let context = parent.context();
    let dispatched = dispatch(&parent.snapshot(), &dispatching::asked(), &context);
    assert!(dispatched.unwrap().adds_work());

    let (mut fixture, job) = (Fixture::default(), launching::periodic());
    fixture.register(&job);
    let context = fixture.context();
    let launched = force(&fixture.snapshot(), &job.key(), 1_000, &context);
    assert!(launched.unwrap().adds_work());

    let (mut fixture, job, alloc_id) = stopping::running();
    let key: JobKey = job.key();
    let options = EvaluateRequest {
        force_reschedule: false,
        max_open_evals: 1_000,
    };
    let context = fixture.context();
    let evaluated = evaluate(&fixture.snapshot(), &key, options, &context);
    assert!(!evaluated.unwrap().adds_work());
    let stopped = stop_alloc(&fixture.snapshot(), alloc_id, false, 1_000, &context);
    assert!(!stopped.unwrap().adds_work());
}
