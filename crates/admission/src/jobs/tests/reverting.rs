//! Going back to a former version.

use model::{EvalStatus, Job, TriggeredBy};
use test_kit::builders;

use super::fixture::{Fixture, NOW, changed, proposal};
use crate::jobs::revert::Target;
use crate::jobs::{Decision, JobRefusal, RevertRequest, revert};

fn to(job: &Job, to: Target) -> RevertRequest {
    RevertRequest {
        job: job.key(),
        to,
        prior_version: None,
        eval_priority: 0,
        max_open_evals: 1_000,
    }
}

fn registered(fixture: &mut Fixture, count: u32) -> Job {
    let job = builders::service("web", 1);
    for n in 0..count {
        fixture.register(&changed(&job, n));
    }
    job
}

fn refused(fixture: &mut Fixture, request: &RevertRequest) -> String {
    let context = fixture.context();
    revert(&fixture.snapshot(), request, &context)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_former_version_is_registered_again_as_a_new_one_that_is_not_stable() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 2);
    fixture.mark_stable(&job, 0);
    let context = fixture.context();
    let request = to(&job, Target::Version(0));
    let decided = proposal(revert(&fixture.snapshot(), &request, &context).unwrap());
    let revision = fixture.commit(&decided);
    let after = fixture.snapshot();
    let current = after.job(&job.key()).unwrap();
    assert_eq!((current.value.version, current.modify_index), (2, revision));
    assert_eq!(current.value.submit_time, NOW);
    assert!(!current.value.spec_differs(&changed(&job, 0)));
    assert!(!after.is_stable(&job.key(), 2));
    let eval = &after.eval(context.eval_id).unwrap().value;
    assert_eq!(
        (eval.status, eval.triggered_by),
        (EvalStatus::Pending, TriggeredBy::JobRegister)
    );
    // The retry of a request whose answer was lost.
    let again = revert(&fixture.snapshot(), &request, &context).unwrap();
    assert_eq!(
        again,
        Decision::Done(decided.answer(context.eval_id, revision))
    );
}

#[test]
fn scenario_012_a_version_with_a_name_stays_and_can_be_gone_back_to() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 2);
    fixture.tag(&job, "gold", Some(1));
    for n in 2..12 {
        fixture.register(&changed(&job, n));
    }
    assert_eq!(fixture.kept(&job.key()), [1, 6, 7, 8, 9, 10, 11]);
    let context = fixture.context();
    let request = to(&job, Target::Tag("gold".to_owned()));
    let decided = proposal(revert(&fixture.snapshot(), &request, &context).unwrap());
    fixture.commit(&decided);
    let after = fixture.snapshot();
    let current = &after.job(&job.key()).unwrap().value;
    assert!(!current.spec_differs(&changed(&job, 1)));
    assert_eq!(current.version, 12);
    assert_eq!(after.version_tag(&job.key(), 12), None);
    assert_eq!(fixture.kept(&job.key()), [1, 7, 8, 9, 10, 11, 12]);
}

#[test]
fn a_missing_version_is_named() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 3);
    let current = refused(&mut fixture, &to(&job, Target::Version(2)));
    assert!(
        current.starts_with("can't revert to current version: "),
        "{current}"
    );
    assert_eq!(
        refused(&mut fixture, &to(&job, Target::Version(9))),
        "job \"web\" in namespace \"default\" at version 9 not found: it keeps 0, 1, 2"
    );
    assert_eq!(
        refused(&mut fixture, &to(&job, Target::Tag("gold".to_owned()))),
        "tag \"gold\" not found: no version of the job has a tag"
    );
    let other = RevertRequest {
        prior_version: Some(1),
        ..to(&job, Target::Version(0))
    };
    let outdated = refused(&mut fixture, &other);
    let nomads = "Current job has version 2; enforcing version 1: ";
    assert!(outdated.starts_with(nomads), "{outdated}");
    let context = fixture.context();
    let missing = to(&builders::service("nope", 1), Target::Version(0));
    let refused = revert(&fixture.snapshot(), &missing, &context);
    assert!(
        matches!(refused, Err(JobRefusal::NoSuchJob(_))),
        "{refused:?}"
    );
}

#[test]
fn a_stopped_job_runs_after_a_revert() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 1);
    fixture.deregister(&job, false);
    let context = fixture.context();
    let request = to(&job, Target::Version(0));
    let decided = proposal(revert(&fixture.snapshot(), &request, &context).unwrap());
    fixture.commit(&decided);
    assert!(!fixture.snapshot().job(&job.key()).unwrap().value.stop);
    // The version that stopped it says what ran, too.
    let context = fixture.context();
    let request = to(&job, Target::Version(1));
    let decided = proposal(revert(&fixture.snapshot(), &request, &context).unwrap());
    assert!(!decided.changed, "it runs as it does");
}

#[test]
fn going_back_is_a_registration_with_all_that_it_is_refused_for() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 2);
    let full = RevertRequest {
        max_open_evals: 0,
        ..to(&job, Target::Version(0))
    };
    let context = fixture.context();
    let refused = revert(&fixture.snapshot(), &full, &context).unwrap_err();
    assert!(
        matches!(refused, JobRefusal::Overloaded { .. }),
        "{refused:?}"
    );
    fixture.configure(true);
    let request = to(&job, Target::Version(0));
    let refused = revert(&fixture.snapshot(), &request, &context).unwrap_err();
    assert_eq!(refused, JobRefusal::Rejected);
}

#[test]
fn a_name_that_moved_meanwhile_is_looked_up_again() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 3);
    fixture.tag(&job, "gold", Some(0));
    let context = fixture.context();
    let request = to(&job, Target::Tag("gold".to_owned()));
    let decided = proposal(revert(&fixture.snapshot(), &request, &context).unwrap());
    let tags = state::Key::JobTags(job.key());
    let compared = decided.writes.iter().filter(|write| *write.key() == tags);
    let modify_index = fixture
        .snapshot()
        .job_tags(&job.key())
        .unwrap()
        .modify_index;
    assert_eq!(
        compared.collect::<Vec<_>>(),
        [&state::Write::RequireUnchanged {
            key: tags,
            modify_index
        }]
    );
}
