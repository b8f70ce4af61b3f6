//! Versions that are stable, and versions with names.

use model::{Job, VersionTag};
use state::Key;
use test_kit::builders;

use super::world::{NOW, World, changed, request};
use crate::admission::marks::{self, Change, Refusal, TagRequest, Tagged};
use crate::writes::Write;

fn registered(world: &mut World, count: u32) -> Job {
    let job = builders::service("web", 1);
    for n in 0..count {
        world.register(&changed(&job, n));
    }
    job
}

fn ask(job: &Job, name: &str, version: Option<u64>) -> TagRequest {
    TagRequest {
        job: job.key(),
        name: name.to_owned(),
        description: String::new(),
        version,
    }
}

fn refused(world: &World, request: &TagRequest) -> String {
    marks::tag(&world.snapshot(), request, NOW)
        .unwrap_err()
        .to_string()
}

fn writes<T: std::fmt::Debug>(change: Change<T>) -> Vec<Write> {
    match change {
        Change::Commit { writes, .. } => writes,
        other => panic!("nothing to commit: {other:?}"),
    }
}

#[test]
fn a_name_stands_for_one_version() {
    let mut world = World::default();
    let job = registered(&mut world, 2);
    world.tag(&job, "gold", None);
    let tag = VersionTag {
        name: "gold".to_owned(),
        description: String::new(),
        tagged_time: NOW,
    };
    assert_eq!(
        world.snapshot().version_tag(&job.key(), 1),
        Some(&tag),
        "the current one when none is named"
    );
    assert_eq!(
        refused(&world, &ask(&job, "gold", Some(0))),
        "tag \"gold\" already exists on a different version of job \"web\": version 1"
    );
    // Asked again, as a retry is, nothing is written.
    let again = marks::tag(&world.snapshot(), &ask(&job, "gold", Some(1)), NOW).unwrap();
    let index = world.snapshot().job_tags(&job.key()).unwrap().modify_index;
    let answer = Tagged { version: 1, tag };
    assert_eq!(again, Change::Unchanged { answer, index });
    // Another name takes its place.
    world.tag(&job, "silver", Some(1));
    world.tag(&job, "gold", Some(0));
    let named = |version| {
        let snapshot = world.snapshot();
        let tag = snapshot.version_tag(&job.key(), version);
        tag.map(|tag| tag.name.clone())
    };
    assert_eq!(named(0).as_deref(), Some("gold"));
    assert_eq!(named(1).as_deref(), Some("silver"));
}

#[test]
fn a_name_is_written_only_while_its_version_and_its_job_are_there() {
    let mut world = World::default();
    let job = registered(&mut world, 1);
    let change = marks::tag(&world.snapshot(), &ask(&job, "gold", Some(0)), NOW).unwrap();
    let writes = writes(change);
    let keys: Vec<&Key> = writes.iter().map(Write::key).collect();
    assert_eq!(
        keys,
        [
            &Key::JobTags(job.key()),
            &Key::JobVersion(job.key(), 0),
            &Key::Job(job.key())
        ]
    );
    assert!(matches!(writes[0], Write::Create { .. }));
    assert!(matches!(writes[1], Write::RequireUnchanged { .. }));
    assert!(matches!(writes[2], Write::RequireUnchanged { .. }));
    assert_eq!(
        refused(&world, &ask(&job, "gold", Some(4))),
        "job \"web\" in namespace \"default\" at version 4 not found: it keeps 0"
    );
    let nobody = builders::service("nope", 1);
    let change = marks::tag(&world.snapshot(), &ask(&nobody, "gold", None), NOW);
    assert_eq!(change, Ok(Change::NoSuchJob));
}

#[test]
fn whoever_deletes_versions_compares_their_names() {
    let mut world = World::default();
    let job = registered(&mut world, 6);
    let compares = |world: &mut World| {
        let decision = world.decide(&changed(&job, 90), &request()).unwrap();
        let proposal = super::world::proposal(decision);
        let tags = Key::JobTags(job.key());
        let found = proposal.writes.iter().find(|write| *write.key() == tags);
        found.cloned()
    };
    let key = Key::JobTags(job.key());
    assert_eq!(compares(&mut world), Some(Write::RequireAbsent { key }));
    world.tag(&job, "gold", None);
    world.register(&changed(&job, 7));
    let key = Key::JobTags(job.key());
    let modify_index = world.snapshot().job_tags(&job.key()).unwrap().modify_index;
    assert_eq!(
        compares(&mut world),
        Some(Write::RequireUnchanged { key, modify_index })
    );
}

#[test]
fn names_go_with_their_job() {
    let mut world = World::default();
    let job = registered(&mut world, 2);
    world.tag(&job, "gold", None);
    world.deregister(&job, true);
    assert!(world.snapshot().job_tags(&job.key()).is_none());
    // Nor does one come while it goes.
    let job = registered(&mut world, 1);
    let stamp = world.stamp();
    let request = crate::admission::DeregisterRequest {
        job: job.key(),
        purge: true,
        eval_priority: 0,
    };
    let decision = crate::admission::deregister(&world.snapshot(), &request, &stamp).unwrap();
    let absent = Write::RequireAbsent {
        key: Key::JobTags(job.key()),
    };
    assert!(super::world::proposal(decision).writes.contains(&absent));
}

#[test]
fn a_name_is_taken_away_and_the_last_one_takes_the_row_with_it() {
    let mut world = World::default();
    let job = registered(&mut world, 2);
    world.tag(&job, "gold", Some(0));
    world.tag(&job, "silver", Some(1));
    for (name, left) in [("gold", 1), ("silver", 0)] {
        let change = marks::untag(&world.snapshot(), &job.key(), name).unwrap();
        world.write(&writes(change));
        let tags = world.snapshot().job_tags(&job.key()).cloned();
        let count = tags.map(|tags| tags.value.versions.len());
        assert_eq!(count, (left > 0).then_some(left));
    }
    let refused = marks::untag(&world.snapshot(), &job.key(), "gold").unwrap_err();
    assert!(matches!(refused, Refusal::NoTag { .. }), "{refused:?}");
}

#[test]
fn names_are_bounded_and_cannot_be_taken_for_numbers() {
    let mut world = World::default();
    let job = registered(&mut world, 1);
    for (name, says) in [
        ("", "missing"),
        ("12", "looks like the number of a version"),
        ("a\nb", "control characters"),
        (&*"x".repeat(129), "want at most 128"),
    ] {
        let text = refused(&world, &ask(&job, name, None));
        assert!(text.contains("name") && text.contains(says), "{text}");
    }
    let long = TagRequest {
        description: "x".repeat(1_001),
        ..ask(&job, "v1", None)
    };
    assert!(refused(&world, &long).contains("want at most 1000"));
    for n in 1..=64 {
        world.tag(&job, &format!("t{n}"), None);
        world.register(&changed(&job, n));
    }
    let text = refused(&world, &ask(&job, "one-more", None));
    assert!(text.contains("64 tagged versions"), "{text}");
}

#[test]
fn a_user_says_which_versions_are_stable() {
    let mut world = World::default();
    let job = registered(&mut world, 2);
    let set = |world: &World, stable| marks::set_stable(&world.snapshot(), &job.key(), 0, stable);
    let change = set(&world, true).unwrap();
    world.write(&writes(change));
    assert!(world.snapshot().is_stable(&job.key(), 0));
    assert!(matches!(set(&world, true), Ok(Change::Unchanged { .. })));
    let change = set(&world, false).unwrap();
    world.write(&writes(change));
    assert!(!world.snapshot().is_stable(&job.key(), 0));
    let refused = marks::set_stable(&world.snapshot(), &job.key(), 7, true).unwrap_err();
    assert!(matches!(refused, Refusal::NoVersion { .. }), "{refused:?}");
}

#[test]
fn a_version_is_not_deleted_while_it_is_being_called_stable() {
    let mut world = World::default();
    let job = registered(&mut world, 6);
    let decision = world.decide(&changed(&job, 90), &request()).unwrap();
    let absent = Write::RequireAbsent {
        key: Key::JobStable(job.key(), 0),
    };
    assert!(super::world::proposal(decision).writes.contains(&absent));
}
