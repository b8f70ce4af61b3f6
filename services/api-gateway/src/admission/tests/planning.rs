//! Dry runs: they see what the scheduler will see.

use model::job::TaskGroup;
use model::{Affinity, Job, Operator};
use test_kit::builders;

use super::world::{World, changed};
use crate::admission::plan::{dry_run, foresee, propose};
use crate::admission::{Refusal, Stamp};

/// Two nodes, and a job of which one allocation runs.
fn world(job: &Job) -> World {
    let mut world = World::default();
    for number in [1, 2] {
        world.stored.put_node(&builders::node(number));
    }
    world.register(job);
    world.place(1, job, 0);
    world
}

fn edited(job: &Job, edit: impl FnOnce(&mut TaskGroup)) -> Job {
    let mut job = job.clone();
    edit(&mut job.task_groups[0]);
    job
}

/// Asserts that what would be there is what is there once the job is registered.
fn assert_foreseen(world: &mut World, job: &Job) {
    let stamp = world.stamp();
    let snapshot = world.snapshot();
    let proposal = propose(&snapshot, job, &stamp).unwrap();
    let foreseen = foresee(&snapshot, proposal.writes.clone());
    let revision = world.commit(&proposal);
    let registered = world.snapshot();
    assert_eq!(foreseen.index(), revision);
    let key = job.key();
    assert_eq!(foreseen.job(&key), registered.job(&key));
    let versions =
        |snapshot: &state::Snapshot| -> Vec<_> { snapshot.job_versions(&key).cloned().collect() };
    assert_eq!(versions(&foreseen), versions(&registered));
    let eval = registered.eval(stamp.eval_id).unwrap();
    assert_eq!(foreseen.eval(stamp.eval_id), Some(eval));
    let decided = |snapshot| scheduler::schedule(snapshot, eval, stamp.now, 7);
    assert_eq!(decided(&foreseen), decided(&registered));
    // And what was copied is as it was.
    assert_eq!(snapshot.index() + 1, revision);
    assert_eq!(snapshot.eval(stamp.eval_id), None);
}

#[test]
fn what_is_foreseen_is_what_a_registration_makes() {
    let job = builders::service("web", 2);
    let near = Affinity {
        left: "${node.datacenter}".to_owned(),
        operator: Operator::Equal,
        right: "dc1".to_owned(),
        weight: 50,
    };
    let jobs = [
        builders::service("other", 1),
        job.clone(),
        changed(&job, 1),
        edited(&job, |group| group.count = 0),
        edited(&job, |group| {
            drop(group.tasks[0].env.insert("A".into(), "b".into()))
        }),
        edited(&job, |group| group.affinities = vec![near]),
        edited(&job, |group| group.tasks[0].resources.cpu_mhz = 99_999),
    ];
    for candidate in &jobs {
        assert_foreseen(&mut world(&job), candidate);
    }
    let mut stopped = world(&job);
    stopped.deregister(&job, false);
    assert_foreseen(&mut stopped, &job);
    let mut purged = world(&job);
    purged.deregister(&job, true);
    assert_foreseen(&mut purged, &job);
}

#[test]
fn versions_that_a_registration_prunes_are_gone_in_what_is_foreseen() {
    let job = builders::service("web", 2);
    let mut world = world(&job);
    for n in 0..8 {
        world.register(&changed(&job, n));
    }
    assert_foreseen(&mut world, &changed(&job, 99));
}

fn try_out(world: &World, job: &Job, stamp: &Stamp) -> Result<u64, Refusal> {
    let snapshot = world.snapshot();
    let proposal = propose(&snapshot, job, stamp)?;
    let found = dry_run(&snapshot, job, proposal, stamp, 7, true)?;
    let group = &found.diff.expect("it was asked for").task_groups[0];
    let updates = &found.updates[&group.name];
    assert_eq!(
        group.updates.get("create"),
        (updates.place > 0).then_some(&updates.place)
    );
    Ok(found.job_modify_index)
}

#[test]
fn the_index_is_that_of_the_job_as_it_is() {
    let job = builders::service("web", 2);
    let mut world = world(&job);
    let stored = world.snapshot().job(&job.key()).unwrap().modify_index;
    let stamp = world.stamp();
    for same_or_not in [job.clone(), changed(&job, 1)] {
        assert_eq!(try_out(&world, &same_or_not, &stamp), Ok(stored));
    }
    let new = builders::service("new", 1);
    assert_eq!(try_out(&world, &new, &stamp), Ok(0));
}

#[test]
fn what_a_registration_refuses_a_dry_run_refuses() {
    let job = builders::service("web", 2);
    let mut world = world(&job);
    let stamp = world.stamp();
    let other_type = builders::batch("web", 2);
    let refusal = try_out(&world, &other_type, &stamp).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("cannot change from service to batch"),
        "{refusal}"
    );
}
