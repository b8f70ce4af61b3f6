//! Versions: which a job keeps.

use test_kit::builders;

use super::fixture::{Fixture, changed};

fn registered(fixture: &mut Fixture, count: u32) -> model::Job {
    let job = builders::service("web", 1);
    for n in 0..count {
        fixture.register(&changed(&job, n));
    }
    job
}

#[test]
fn the_newest_six_are_kept() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 10);
    assert_eq!(fixture.kept(&job.key()), [4, 5, 6, 7, 8, 9]);
}

#[test]
fn scenario_011_the_newest_stable_version_is_among_the_six() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 3);
    fixture.mark_stable(&job, 2);
    for n in 3..9 {
        fixture.register(&changed(&job, n));
    }
    assert_eq!(fixture.kept(&job.key()), [2, 4, 5, 6, 7, 8]);
    fixture.register(&changed(&job, 9));
    assert_eq!(fixture.kept(&job.key()), [2, 5, 6, 7, 8, 9]);
}

#[test]
fn of_two_stable_versions_the_older_one_goes_and_its_marker_with_it() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 3);
    fixture.mark_stable(&job, 0);
    fixture.mark_stable(&job, 2);
    for n in 3..7 {
        fixture.register(&changed(&job, n));
    }
    assert_eq!(fixture.kept(&job.key()), [1, 2, 3, 4, 5, 6]);
    assert!(!fixture.snapshot().is_stable(&job.key(), 0));
    assert!(fixture.snapshot().is_stable(&job.key(), 2));
}

#[test]
fn a_version_that_an_allocation_names_stays_and_takes_no_others_place() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 1);
    fixture.place(1, &job, 0);
    for n in 1..10 {
        fixture.register(&changed(&job, n));
    }
    assert_eq!(fixture.kept(&job.key()), [0, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn an_unchanged_job_prunes_nothing() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 6);
    fixture.register(&changed(&job, 5));
    assert_eq!(fixture.kept(&job.key()), [0, 1, 2, 3, 4, 5]);
}
