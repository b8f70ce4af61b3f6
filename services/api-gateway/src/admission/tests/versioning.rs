//! Which versions are kept.

use test_kit::builders;

use super::world::{World, changed};

fn registered(world: &mut World, count: u32) -> model::Job {
    let job = builders::service("web", 1);
    for n in 0..count {
        world.register(&changed(&job, n));
    }
    job
}

#[test]
fn the_newest_six_are_kept() {
    let mut world = World::default();
    let job = registered(&mut world, 10);
    assert_eq!(world.kept(&job.key()), [4, 5, 6, 7, 8, 9]);
}

#[test]
fn scenario_011_the_newest_stable_version_is_among_the_six() {
    let mut world = World::default();
    let job = registered(&mut world, 3);
    world.mark_stable(&job, 2);
    for n in 3..9 {
        world.register(&changed(&job, n));
    }
    assert_eq!(world.kept(&job.key()), [2, 4, 5, 6, 7, 8]);
    world.register(&changed(&job, 9));
    assert_eq!(world.kept(&job.key()), [2, 5, 6, 7, 8, 9]);
}

#[test]
fn of_two_stable_versions_the_older_one_goes_and_its_marker_with_it() {
    let mut world = World::default();
    let job = registered(&mut world, 3);
    world.mark_stable(&job, 0);
    world.mark_stable(&job, 2);
    for n in 3..7 {
        world.register(&changed(&job, n));
    }
    assert_eq!(world.kept(&job.key()), [1, 2, 3, 4, 5, 6]);
    assert!(!world.snapshot().is_stable(&job.key(), 0));
    assert!(world.snapshot().is_stable(&job.key(), 2));
}

#[test]
fn a_version_that_an_allocation_names_stays_and_takes_no_others_place() {
    let mut world = World::default();
    let job = registered(&mut world, 1);
    world.place(1, &job, 0);
    for n in 1..10 {
        world.register(&changed(&job, n));
    }
    assert_eq!(world.kept(&job.key()), [0, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn an_unchanged_job_prunes_nothing() {
    let mut world = World::default();
    let job = registered(&mut world, 6);
    world.register(&changed(&job, 5));
    assert_eq!(world.kept(&job.key()), [0, 1, 2, 3, 4, 5]);
}
