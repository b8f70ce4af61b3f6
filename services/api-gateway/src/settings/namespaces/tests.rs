use model::namespace::Capabilities;
use model::volume::{AccessMode, AttachmentMode, Capability};
use model::{
    ClientStatus, DesiredStatus, NodeId, NodePool, NodeStatus, Timestamp, Volume, VolumeId,
};
use test_kit::builders;

use super::*;
use crate::testing::Stored;

fn put(stored: &mut Stored, namespace: Namespace) -> u64 {
    let key = Key::Namespace(namespace.name.clone());
    stored.put(key, Entity::Namespace(Box::new(namespace)))
}

fn dev() -> Namespace {
    Namespace::named("dev")
}

fn deleting() -> Namespace {
    Namespace {
        deleting: true,
        ..dev()
    }
}

fn job() -> Job {
    Job {
        namespace: "dev".to_owned(),
        ..builders::service("web", 1)
    }
}

fn fields(errors: &FieldErrors) -> Vec<&str> {
    errors.0.iter().map(|error| error.field.as_str()).collect()
}

#[test]
fn what_is_as_it_was_is_not_written() {
    let mut stored = Stored::default();
    let made = upsert(&stored.snapshot(), &dev(), None).unwrap();
    assert!(matches!(made, Change::Write(write) if matches!(*write, Write::Create { .. })));
    let modify_index = put(&mut stored, dev());
    let same = upsert(&stored.snapshot(), &dev(), None).unwrap();
    assert_eq!(same, Change::Unchanged { modify_index });
    // To apply a namespace that was about to be deleted keeps it.
    put(&mut stored, deleting());
    let kept = upsert(&stored.snapshot(), &dev(), None).unwrap();
    assert!(matches!(kept, Change::Write(_)));
}

#[test]
fn a_check_index_is_that_of_the_key_or_0() {
    let mut stored = Stored::default();
    upsert(&stored.snapshot(), &dev(), Some(0)).unwrap();
    let missing = upsert(&stored.snapshot(), &dev(), Some(7)).unwrap_err();
    let text = "namespace \"dev\" has modify index 0 and not 7";
    assert!(missing.to_string().starts_with(text), "{missing}");
    let found = put(&mut stored, Namespace::named("dev"));
    let other = Namespace {
        description: "for trying out".to_owned(),
        ..dev()
    };
    upsert(&stored.snapshot(), &other, Some(found)).unwrap();
    upsert(&stored.snapshot(), &other, Some(0)).unwrap_err();
    // Whoever has had no answer asks again.
    let again = upsert(&stored.snapshot(), &dev(), Some(0)).unwrap();
    assert_eq!(
        again,
        Change::Unchanged {
            modify_index: found
        }
    );
}

#[test]
fn a_namespace_is_marked_and_then_deleted() {
    let mut stored = Stored::default();
    let missing = delete(&stored.snapshot(), "dev").unwrap_err();
    assert_eq!(missing.to_string(), "namespace \"dev\" not found");
    let default = delete(&stored.snapshot(), "default").unwrap_err();
    assert_eq!(default.to_string(), "can not delete default namespace");
    put(&mut stored, dev());
    match delete(&stored.snapshot(), "dev").unwrap() {
        Deletion::Mark(Write::Update { entity, .. }) => {
            assert_eq!(entity, Entity::Namespace(Box::new(deleting())));
        }
        other => panic!("{other:?}"),
    }
    let modify_index = put(&mut stored, deleting());
    let key = Key::Namespace("dev".to_owned());
    let write = Write::Delete { key, modify_index };
    let last = delete(&stored.snapshot(), "dev").unwrap();
    assert_eq!(last, Deletion::Delete(write));
}

fn in_dev(stored: &mut Stored, what: &str) {
    match what {
        "jobs" => drop(stored.put_job(&job())),
        "allocations" => {
            let alloc = builders::allocation(1, &job(), NodeId::from_random(1));
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
        put(&mut stored, dev());
        in_dev(&mut stored, what);
        let refusal = delete(&stored.snapshot(), "dev").unwrap_err();
        let text = format!("namespace \"dev\" has {text}");
        assert!(refusal.to_string().starts_with(&text), "{refusal}");
        // It came after the namespace was looked at and before it was marked.
        put(&mut stored, deleting());
        match delete(&stored.snapshot(), "dev").unwrap() {
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
fn what_was_told_to_stop_keeps_a_namespace_until_it_has_ended_on_its_node() {
    let mut stored = Stored::default();
    put(&mut stored, dev());
    let mut node = builders::node(1);
    stored.put_node(&node);
    let mut alloc = builders::allocation(1, &job(), node.id);
    alloc.desired_status = DesiredStatus::Stop;
    stored.put_alloc(&alloc);
    let refused = |stored: &Stored| delete(&stored.snapshot(), "dev").is_err();
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
fn what_has_ended_and_what_is_elsewhere_keeps_no_namespace() {
    let mut stored = Stored::default();
    put(&mut stored, dev());
    let stopped = Job {
        stop: true,
        ..job()
    };
    stored.put_job(&stopped);
    let alloc = builders::allocation(1, &job(), NodeId::from_random(1));
    stored.put_alloc(&alloc);
    stored.put_status(alloc.id, ClientStatus::Complete);
    stored.put_job(&builders::service("web", 1));
    let step = delete(&stored.snapshot(), "dev").unwrap();
    assert!(matches!(step, Deletion::Mark(_)), "{step:?}");
}

#[test]
fn a_job_joins_a_namespace_that_is_there_to_stay() {
    let mut stored = Stored::default();
    let text = |stored: &Stored| {
        let errors = join_as_job(&stored.snapshot(), &job()).unwrap_err();
        assert_eq!(errors, admit(&stored.snapshot(), &job()).unwrap_err());
        assert_eq!(fields(&errors), ["namespace"]);
        errors.0[0].message.clone()
    };
    let expected = "job \"web\" is in nonexistent namespace \"dev\": want one of 'kafila namespace \
                    list', or make it with 'kafila namespace apply dev'";
    assert_eq!(text(&stored), expected);
    put(&mut stored, deleting());
    assert!(text(&stored).contains("which is being deleted"));
    let modify_index = put(&mut stored, dev());
    let key = Key::Namespace("dev".to_owned());
    let compare = Write::RequireUnchanged { key, modify_index };
    let joined = join_as_job(&stored.snapshot(), &job()).unwrap();
    assert_eq!(joined, std::slice::from_ref(&compare));
    assert_eq!(admit(&stored.snapshot(), &job()).unwrap(), [compare]);
}

#[test]
fn namespace_and_pool_that_are_missing_are_named_together() {
    let lost = Job {
        node_pool: "gpu".to_owned(),
        ..job()
    };
    let errors = join_as_job(&Stored::default().snapshot(), &lost).unwrap_err();
    assert_eq!(fields(&errors), ["namespace", "node_pool"]);
}

#[test]
fn a_registration_compares_the_default_namespace_whoever_has_changed_it() {
    let mut stored = Stored::default();
    let web = builders::service("web", 1);
    let key = Key::Namespace("default".to_owned());
    let absent = Write::RequireAbsent { key: key.clone() };
    assert_eq!(admit(&stored.snapshot(), &web).unwrap(), [absent]);
    // Nothing that only lets it live on has to.
    assert_eq!(join_as_job(&stored.snapshot(), &web).unwrap(), []);
    let modify_index = put(&mut stored, Namespace::named("default"));
    let compare = Write::RequireUnchanged { key, modify_index };
    assert_eq!(admit(&stored.snapshot(), &web).unwrap(), [compare]);
}

#[test]
fn a_driver_that_is_not_allowed_is_named_with_its_task() {
    let mut stored = Stored::default();
    let rules = Namespace {
        capabilities: Capabilities {
            enabled_task_drivers: vec!["docker".to_owned(), "exec".to_owned()],
            disabled_task_drivers: vec!["exec".to_owned()],
        },
        ..dev()
    };
    put(&mut stored, rules);
    let job = job();
    let (group, task) = (&job.task_groups[0], &job.task_groups[0].tasks[0]);
    let errors = admit(&stored.snapshot(), &job).unwrap_err();
    let field = format!("group[{:?}].task[{:?}].driver", group.name, task.name);
    assert_eq!(fields(&errors), [field]);
    let text = format!(
        "{:?} is not allowed in namespace \"dev\": want docker",
        task.driver
    );
    assert_eq!(errors.0[0].message, text);
}

#[test]
fn a_node_pool_is_the_default_one_or_allowed_or_not_denied() {
    let list = |patterns: &[&str]| patterns.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    let rules = |default: &str, allowed: Option<&[&str]>, denied: &[&str]| NodePoolRules {
        default: default.to_owned(),
        allowed: allowed.map(list),
        denied: list(denied),
    };
    for (rules, pool, want) in [
        (rules("", None, &[]), "gpu", true),
        (rules("", Some(&[]), &[]), "default", true),
        (rules("", Some(&[]), &[]), "gpu", false),
        (rules("batch", Some(&["gpu-*"]), &[]), "batch", true),
        (rules("batch", Some(&["gpu-*"]), &[]), "gpu-2", true),
        (rules("batch", Some(&["gpu-*"]), &[]), "gpu", false),
        (rules("batch", Some(&["gpu-*"]), &[]), "default", false),
        (rules("", None, &["gpu*"]), "gpu-2", false),
        (rules("", None, &["gpu*"]), "all", true),
        (rules("", None, &["*"]), "default", true),
    ] {
        assert_eq!(allow_pool(&rules, pool), want, "{pool:?} by {rules:?}");
        let mut stored = Stored::default();
        let namespace = Namespace {
            node_pools: rules,
            ..dev()
        };
        put(&mut stored, namespace);
        for name in ["gpu", "gpu-2", "batch"] {
            let key = Key::NodePool(name.to_owned());
            stored.put(key, Entity::NodePool(Box::new(NodePool::named(name))));
        }
        let job = Job {
            node_pool: pool.to_owned(),
            ..job()
        };
        match admit(&stored.snapshot(), &job) {
            Ok(_) => assert!(want),
            Err(errors) => {
                assert!(!want);
                assert_eq!(fields(&errors), ["node_pool"]);
                let text = format!("{pool:?} is not allowed in namespace \"dev\": want ");
                assert!(errors.0[0].message.starts_with(&text), "{errors}");
            }
        }
    }
}

#[test]
fn a_job_that_names_no_pool_is_in_that_of_its_namespace() {
    let mut stored = Stored::default();
    let pool = |stored: &Stored, names_none: bool| {
        let job = job();
        let snapshot = stored.snapshot();
        let job = with_node_pool(&snapshot, &job, names_none);
        job.node_pool.clone()
    };
    assert_eq!(pool(&stored, true), "default");
    let rules = Namespace {
        node_pools: NodePoolRules {
            default: "batch".to_owned(),
            ..NodePoolRules::default()
        },
        ..dev()
    };
    put(&mut stored, rules);
    assert_eq!(pool(&stored, true), "batch");
    assert_eq!(pool(&stored, false), "default");
}
