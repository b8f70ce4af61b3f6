//! Stops of single allocations.

use model::{AllocId, ClientStatus, DesiredStatus, DesiredTransition, Job};
use test_kit::builders;

use super::fixture::Fixture;
use crate::jobs::stop_alloc::stop_alloc;
use crate::jobs::{JobRefusal, Outcome};

pub(super) fn running() -> (Fixture, Job, AllocId) {
    let mut fixture = Fixture::default();
    let job = builders::service("web", 2);
    fixture.register(&job);
    let id = fixture.place(1, &job, 0);
    fixture.place(2, &job, 0);
    fixture.stored.put_status(id, ClientStatus::Running);
    (fixture, job, id)
}

fn refused(fixture: &mut Fixture, id: AllocId) -> String {
    let context = fixture.context();
    let decided = stop_alloc(&fixture.snapshot(), id, false, 1_000, &context);
    decided.unwrap_err().to_string()
}

#[test]
fn a_stop_marks_the_allocation_and_evaluates_its_job() {
    let (mut fixture, job, id) = running();
    let context = fixture.context();
    let decided = stop_alloc(&fixture.snapshot(), id, false, 1_000, &context).unwrap();
    let Outcome::Commit {
        writes, receipt, ..
    } = decided
    else {
        panic!("{decided:?}");
    };
    let revision = fixture.write(&writes);
    let snapshot = fixture.snapshot();
    let marked = snapshot
        .allocs()
        .filter(|view| view.alloc.transition.migrate);
    let marked: Vec<AllocId> = marked.map(|view| view.alloc.id).collect();
    assert_eq!(marked, [id]);
    let eval = snapshot.eval(context.eval_id).unwrap();
    assert_eq!(eval.value.triggered_by.as_str(), "alloc-stop");
    assert_eq!(eval.value.job, job.key());

    // A retry of the same request, once more evaluations are open than it would accept.
    let again = stop_alloc(&snapshot, id, false, 0, &context).unwrap();
    let index = revision;
    assert_eq!(again, Outcome::Done { receipt, index });
}

#[test]
fn an_ended_allocation_or_one_without_a_job_is_refused_with_the_reason() {
    let (mut fixture, job, id) = running();
    fixture.stored.put_status(id, ClientStatus::Failed);
    assert!(refused(&mut fixture, id).contains("has ended already (failed)"));

    let (mut fixture, ..) = running();
    let mut stopped = builders::allocation(3, &job, model::NodeId::from_random(1));
    stopped.desired_status = DesiredStatus::Stop;
    fixture.stored.put_alloc(&stopped);
    assert!(refused(&mut fixture, stopped.id).contains("is being stopped already"));

    let gone = AllocId::from_random(99);
    assert!(refused(&mut fixture, gone).contains("garbage collected"));

    fixture.deregister(&job, true);
    assert!(refused(&mut fixture, id).contains("is purged"));
}

#[test]
fn at_the_bound_of_open_evaluations_a_stop_is_refused() {
    let (mut fixture, _, id) = running();
    let context = fixture.context();
    let decided = stop_alloc(&fixture.snapshot(), id, false, 1, &context);
    assert_eq!(decided, Err(JobRefusal::Overloaded { open: 1 }));
}

/// Returns the transition of an allocation after its stop without delays.
fn stopped_at_once(fixture: &mut Fixture, id: AllocId) -> Result<DesiredTransition, JobRefusal> {
    let context = fixture.context();
    let decided = stop_alloc(&fixture.snapshot(), id, true, 1_000, &context)?;
    let Outcome::Commit { writes, .. } = decided else {
        panic!("{decided:?}");
    };
    fixture.write(&writes);
    Ok(fixture.snapshot().alloc(id).unwrap().alloc.transition)
}

#[test]
fn a_stop_without_shutdown_delay_says_so_to_the_node() {
    let (mut fixture, _, id) = running();
    let transition = stopped_at_once(&mut fixture, id).unwrap();
    assert!(transition.migrate && transition.no_shutdown_delay);
}

#[test]
fn the_delay_of_a_stop_in_progress_is_ended_once() {
    let (mut fixture, job, _) = running();
    let mut stopping = builders::allocation(3, &job, model::NodeId::from_random(1));
    stopping.desired_status = DesiredStatus::Stop;
    fixture.stored.put_alloc(&stopping);
    let transition = stopped_at_once(&mut fixture, stopping.id).unwrap();
    assert!(transition.no_shutdown_delay);
    let again = stopped_at_once(&mut fixture, stopping.id).unwrap_err();
    assert!(
        again.to_string().contains("is being stopped already"),
        "{again}"
    );
}
