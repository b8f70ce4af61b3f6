//! Namespaces: applied, marked and deleted, and the objects that keep one.

use model::volume::{AccessMode, AttachmentMode, Capability};
use model::{ClientStatus, DesiredStatus, Job, NodeId, NodeStatus, Timestamp, Volume, VolumeId};
use state::{Entity, Key};
use test_kit::{Stored, builders};

use super::*;
use crate::testing::{deleting_dev, dev, job_in_dev, put_namespace};

/// As of the newest revision.
const NO_VARIABLES: VariableCount = VariableCount {
    count: 0,
    revision: u64::MAX,
};

#[test]
fn an_unchanged_namespace_is_not_written() {
    let mut stored = Stored::default();
    let made = upsert(&stored.snapshot(), &dev(), None).unwrap();
    assert!(matches!(made, OneWrite::Write(write) if matches!(*write, Write::Create { .. })));
    let modify_index = put_namespace(&mut stored, dev());
    let same = upsert(&stored.snapshot(), &dev(), None).unwrap();
    assert_eq!(same, OneWrite::Unchanged { modify_index });
    // To apply a namespace that was about to be deleted keeps it.
    put_namespace(&mut stored, deleting_dev());
    let kept = upsert(&stored.snapshot(), &dev(), None).unwrap();
    assert!(matches!(kept, OneWrite::Write(_)));
}

#[test]
fn a_check_index_is_that_of_the_key_or_0() {
    let mut stored = Stored::default();
    upsert(&stored.snapshot(), &dev(), Some(0)).unwrap();
    let missing = upsert(&stored.snapshot(), &dev(), Some(7)).unwrap_err();
    let text = "namespace \"dev\" has modify index 0 and not 7";
    assert!(missing.to_string().starts_with(text), "{missing}");
    let found = put_namespace(&mut stored, Namespace::named("dev"));
    let other = Namespace {
        description: "for trying out".to_owned(),
        ..dev()
    };
    upsert(&stored.snapshot(), &other, Some(found)).unwrap();
    upsert(&stored.snapshot(), &other, Some(0)).unwrap_err();
    // A caller whose answer was lost sends its request again.
    let again = upsert(&stored.snapshot(), &dev(), Some(0)).unwrap();
    assert_eq!(
        again,
        OneWrite::Unchanged {
            modify_index: found
        }
    );
}

#[test]
fn a_namespace_is_marked_and_then_deleted() {
    let mut stored = Stored::default();
    let missing = delete(&stored.snapshot(), "dev", NO_VARIABLES).unwrap_err();
    assert_eq!(missing.to_string(), "namespace \"dev\" not found");
    let default = delete(&stored.snapshot(), "default", NO_VARIABLES).unwrap_err();
    let text = default.to_string();
    assert!(
        text.starts_with("can not delete default namespace, "),
        "{text}"
    );
    put_namespace(&mut stored, dev());
    match delete(&stored.snapshot(), "dev", NO_VARIABLES).unwrap() {
        Deletion::Mark(Write::Update { entity, .. }) => {
            assert_eq!(entity, Entity::Namespace(Box::new(deleting_dev())));
        }
        other => panic!("{other:?}"),
    }
    let modify_index = put_namespace(&mut stored, deleting_dev());
    let key = Key::Namespace("dev".to_owned());
    let write = Write::Delete { key, modify_index };
    let last = delete(&stored.snapshot(), "dev", NO_VARIABLES).unwrap();
    assert_eq!(last, Deletion::Delete(vec![write]));
}

fn in_dev(stored: &mut Stored, what: &str) {
    match what {
        "jobs" => drop(stored.put_job(&job_in_dev())),
        "allocations" => {
            let alloc = builders::allocation(1, &job_in_dev(), NodeId::from_random(1));
            stored.put_alloc(&alloc);
            stored.put_status(alloc.id, ClientStatus::Running);
        }
        _ => {
            let volume = Volume {
                namespace: "dev".to_owned(),
                name: "data".to_owned(),
                node_id: NodeId::from_random(1),
                id: VolumeId::from_random(1),
                host_path: "/srv/data".to_owned(),
                capabilities: vec![Capability {
                    access_mode: AccessMode::SingleNodeWriter,
                    attachment_mode: AttachmentMode::FileSystem,
                }],
                deleting: false,
                create_time: Timestamp::NEVER,
                modify_time: Timestamp::NEVER,
            };
            let key = Key::Volume(volume.key());
            stored.put(key, Entity::Volume(Box::new(volume)));
        }
    }
}

#[test]
fn jobs_allocations_and_volumes_keep_a_namespace() {
    for (what, text) in [
        (
            "jobs",
            "non-terminal jobs in regions: [global], such as web",
        ),
        (
            "allocations",
            "non-terminal allocations in regions: [global], such as ",
        ),
        ("volumes", "volumes in regions: [global], such as data"),
    ] {
        let mut stored = Stored::default();
        put_namespace(&mut stored, dev());
        in_dev(&mut stored, what);
        let refusal = delete(&stored.snapshot(), "dev", NO_VARIABLES).unwrap_err();
        let text = format!("namespace \"dev\" has {text}");
        assert!(refusal.to_string().starts_with(&text), "{refusal}");
        // It was created between the first look and the mark.
        put_namespace(&mut stored, deleting_dev());
        match delete(&stored.snapshot(), "dev", NO_VARIABLES).unwrap() {
            Deletion::TakeBack {
                write: Write::Update { entity, .. },
                refusal: found,
            } => {
                assert_eq!(entity, Entity::Namespace(Box::new(dev())));
                assert_eq!(found, refusal);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_stopping_allocation_keeps_a_namespace_until_it_has_ended() {
    let mut stored = Stored::default();
    put_namespace(&mut stored, dev());
    let mut node = builders::node(1);
    stored.put_node(&node);
    let mut alloc = builders::allocation(1, &job_in_dev(), node.id);
    alloc.desired_status = DesiredStatus::Stop;
    stored.put_alloc(&alloc);
    let refused = |stored: &Stored| delete(&stored.snapshot(), "dev", NO_VARIABLES).is_err();
    assert!(refused(&stored), "the node may be starting it");
    // A node that is down does not say so any more, unless it runs there already.
    node.status = NodeStatus::Down;
    stored.put_node(&node);
    assert!(!refused(&stored));
    stored.put_status(alloc.id, ClientStatus::Running);
    assert!(refused(&stored));
    node.status = NodeStatus::Ready;
    stored.put_node(&node);
    assert!(refused(&stored));
    stored.put_status(alloc.id, ClientStatus::Complete);
    assert!(!refused(&stored));
}

#[test]
fn ended_objects_and_other_namespaces_keep_no_namespace() {
    let mut stored = Stored::default();
    put_namespace(&mut stored, dev());
    let stopped = Job {
        stop: true,
        ..job_in_dev()
    };
    stored.put_job(&stopped);
    let alloc = builders::allocation(1, &job_in_dev(), NodeId::from_random(1));
    stored.put_alloc(&alloc);
    stored.put_status(alloc.id, ClientStatus::Complete);
    stored.put_job(&builders::service("web", 1));
    let step = delete(&stored.snapshot(), "dev", NO_VARIABLES).unwrap();
    assert!(matches!(step, Deletion::Mark(_)), "{step:?}");
}

#[test]
fn a_namespace_with_variables_stays() {
    let mut stored = Stored::default();
    put_namespace(&mut stored, dev());
    let some = VariableCount {
        count: 3,
        revision: u64::MAX,
    };
    let refusal = delete(&stored.snapshot(), "dev", some).unwrap_err();
    assert!(refusal.to_string().contains("3 in number"), "{refusal}");
    put_namespace(&mut stored, deleting_dev());
    let step = delete(&stored.snapshot(), "dev", some).unwrap();
    assert!(matches!(step, Deletion::TakeBack { .. }), "{step:?}");
}

#[test]
fn variables_are_counted_after_the_mark() {
    let mut stored = Stored::default();
    let marked = put_namespace(&mut stored, deleting_dev());
    let before = VariableCount {
        count: 0,
        revision: marked - 1,
    };
    let step = delete(&stored.snapshot(), "dev", before).unwrap();
    assert!(matches!(step, Deletion::Mark(_)), "{step:?}");
    let after = VariableCount {
        revision: marked,
        ..before
    };
    let step = delete(&stored.snapshot(), "dev", after).unwrap();
    assert!(matches!(step, Deletion::Delete(_)), "{step:?}");
}
