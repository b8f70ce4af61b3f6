//! Versions that are stable, and versions with names.

use model::{Job, VersionTag};
use state::{Key, Write};
use test_kit::builders;

use super::fixture::{Fixture, NOW, changed, request};
use crate::jobs::marks::{self, LabelDecision, TagRequest, Tagged, VersionRefusal};

fn registered(fixture: &mut Fixture, count: u32) -> Job {
    let job = builders::service("web", 1);
    for n in 0..count {
        fixture.register(&changed(&job, n));
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

fn refused(fixture: &Fixture, request: &TagRequest) -> String {
    marks::tag(&fixture.snapshot(), request, NOW)
        .unwrap_err()
        .to_string()
}

fn writes<T: std::fmt::Debug>(change: LabelDecision<T>) -> Vec<Write> {
    match change {
        LabelDecision::Commit { writes, .. } => writes,
        other => panic!("nothing to commit: {other:?}"),
    }
}

#[test]
fn a_name_stands_for_one_version() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 2);
    fixture.tag(&job, "gold", None);
    let tag = VersionTag {
        name: "gold".to_owned(),
        description: String::new(),
        tagged_time: NOW,
    };
    assert_eq!(
        fixture.snapshot().version_tag(&job.key(), 1),
        Some(&tag),
        "the current one when none is named"
    );
    assert_eq!(
        refused(&fixture, &ask(&job, "gold", Some(0))),
        "tag \"gold\" already exists on a different version of job \"web\": version 1"
    );
    // Asked again, as a retry is, nothing is written.
    let again = marks::tag(&fixture.snapshot(), &ask(&job, "gold", Some(1)), NOW).unwrap();
    let index = fixture
        .snapshot()
        .job_tags(&job.key())
        .unwrap()
        .modify_index;
    let answer = Tagged { version: 1, tag };
    assert_eq!(again, LabelDecision::Unchanged { answer, index });
    // Another name takes its place.
    fixture.tag(&job, "silver", Some(1));
    fixture.tag(&job, "gold", Some(0));
    let named = |version| {
        let snapshot = fixture.snapshot();
        let tag = snapshot.version_tag(&job.key(), version);
        tag.map(|tag| tag.name.clone())
    };
    assert_eq!(named(0).as_deref(), Some("gold"));
    assert_eq!(named(1).as_deref(), Some("silver"));
}

#[test]
fn a_name_is_written_only_while_its_version_and_its_job_are_there() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 1);
    let change = marks::tag(&fixture.snapshot(), &ask(&job, "gold", Some(0)), NOW).unwrap();
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
        refused(&fixture, &ask(&job, "gold", Some(4))),
        "job \"web\" in namespace \"default\" at version 4 not found: it keeps 0"
    );
    let missing = builders::service("nope", 1);
    let change = marks::tag(&fixture.snapshot(), &ask(&missing, "gold", None), NOW);
    assert!(
        matches!(change, Err(VersionRefusal::NoSuchJob(_))),
        "{change:?}"
    );
}

#[test]
fn deletions_of_versions_compare_the_tags() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 6);
    let compares = |fixture: &mut Fixture| {
        let decision = fixture.decide(&changed(&job, 90), &request()).unwrap();
        let proposal = super::fixture::proposal(decision);
        let tags = Key::JobTags(job.key());
        let found = proposal.writes.iter().find(|write| *write.key() == tags);
        found.cloned()
    };
    let key = Key::JobTags(job.key());
    assert_eq!(compares(&mut fixture), Some(Write::RequireAbsent { key }));
    fixture.tag(&job, "gold", None);
    fixture.register(&changed(&job, 7));
    let key = Key::JobTags(job.key());
    let modify_index = fixture
        .snapshot()
        .job_tags(&job.key())
        .unwrap()
        .modify_index;
    assert_eq!(
        compares(&mut fixture),
        Some(Write::RequireUnchanged { key, modify_index })
    );
}

#[test]
fn names_go_with_their_job() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 2);
    fixture.tag(&job, "gold", None);
    fixture.deregister(&job, true);
    assert!(fixture.snapshot().job_tags(&job.key()).is_none());
    // Nor does one come while it goes.
    let job = registered(&mut fixture, 1);
    let context = fixture.context();
    let request = crate::jobs::DeregisterRequest {
        job: job.key(),
        purge: true,
        eval_priority: 0,
        no_shutdown_delay: false,
    };
    let decision = crate::jobs::deregister(&fixture.snapshot(), &request, &context).unwrap();
    let absent = Write::RequireAbsent {
        key: Key::JobTags(job.key()),
    };
    assert!(super::fixture::proposal(decision).writes.contains(&absent));
}

#[test]
fn a_name_is_taken_away_and_the_last_one_takes_the_row_with_it() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 2);
    fixture.tag(&job, "gold", Some(0));
    fixture.tag(&job, "silver", Some(1));
    for (name, left) in [("gold", 1), ("silver", 0)] {
        let change = marks::untag(&fixture.snapshot(), &job.key(), name).unwrap();
        fixture.write(&writes(change));
        let tags = fixture.snapshot().job_tags(&job.key()).cloned();
        let count = tags.map(|tags| tags.value.versions.len());
        assert_eq!(count, (left > 0).then_some(left));
    }
    let refused = marks::untag(&fixture.snapshot(), &job.key(), "gold").unwrap_err();
    assert!(
        matches!(refused, VersionRefusal::NoTag { .. }),
        "{refused:?}"
    );
}

#[test]
fn names_are_bounded_and_cannot_be_taken_for_numbers() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 1);
    for (name, says) in [
        ("", "missing"),
        ("12", "looks like the number of a version"),
        ("a\nb", "control characters"),
        (&*"x".repeat(129), "want at most 128"),
    ] {
        let text = refused(&fixture, &ask(&job, name, None));
        assert!(text.contains("name") && text.contains(says), "{text}");
    }
    let long = TagRequest {
        description: "x".repeat(1_001),
        ..ask(&job, "v1", None)
    };
    assert!(refused(&fixture, &long).contains("want at most 1000"));
    for n in 1..=64 {
        fixture.tag(&job, &format!("t{n}"), None);
        fixture.register(&changed(&job, n));
    }
    let text = refused(&fixture, &ask(&job, "one-more", None));
    assert!(text.contains("64 tagged versions"), "{text}");
}

#[test]
fn a_user_says_which_versions_are_stable() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 2);
    let set =
        |fixture: &Fixture, stable| marks::set_stable(&fixture.snapshot(), &job.key(), 0, stable);
    let change = set(&fixture, true).unwrap();
    fixture.write(&writes(change));
    assert!(fixture.snapshot().is_stable(&job.key(), 0));
    assert!(matches!(
        set(&fixture, true),
        Ok(LabelDecision::Unchanged { .. })
    ));
    let change = set(&fixture, false).unwrap();
    fixture.write(&writes(change));
    assert!(!fixture.snapshot().is_stable(&job.key(), 0));
    let refused = marks::set_stable(&fixture.snapshot(), &job.key(), 7, true).unwrap_err();
    assert!(
        matches!(refused, VersionRefusal::NoVersion { .. }),
        "{refused:?}"
    );
}

#[test]
fn a_version_is_not_deleted_while_it_is_being_called_stable() {
    let mut fixture = Fixture::default();
    let job = registered(&mut fixture, 6);
    let decision = fixture.decide(&changed(&job, 90), &request()).unwrap();
    let absent = Write::RequireAbsent {
        key: Key::JobStable(job.key(), 0),
    };
    assert!(super::fixture::proposal(decision).writes.contains(&absent));
}
