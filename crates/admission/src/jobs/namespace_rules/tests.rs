//! Rules of a namespace for jobs: its existence, drivers and node pools.

use model::NodePool;
use model::namespace::Capabilities;
use state::Entity;
use test_kit::{Stored, builders};

use super::*;
use crate::testing::{deleting_dev, dev, job_in_dev, put_namespace};

fn fields(errors: &FieldErrors) -> Vec<&str> {
    errors.0.iter().map(|error| error.field.as_str()).collect()
}

#[test]
fn a_job_joins_a_namespace_that_is_there_to_stay() {
    let mut stored = Stored::default();
    let text = |stored: &Stored| {
        let errors = require_for_job(&stored.snapshot(), &job_in_dev()).unwrap_err();
        assert_eq!(
            errors,
            admit(&stored.snapshot(), &job_in_dev()).unwrap_err()
        );
        assert_eq!(fields(&errors), ["namespace"]);
        errors.0[0].message.clone()
    };
    let expected = "job \"web\" is in nonexistent namespace \"dev\": want one of 'kafila namespace \
                    list', or make it with 'kafila namespace apply dev'";
    assert_eq!(text(&stored), expected);
    put_namespace(&mut stored, deleting_dev());
    assert!(text(&stored).contains("which is being deleted"));
    let modify_index = put_namespace(&mut stored, dev());
    let key = Key::Namespace("dev".to_owned());
    let compare = Write::RequireUnchanged { key, modify_index };
    let joined = require_for_job(&stored.snapshot(), &job_in_dev()).unwrap();
    assert_eq!(joined, std::slice::from_ref(&compare));
    assert_eq!(admit(&stored.snapshot(), &job_in_dev()).unwrap(), [compare]);
}

#[test]
fn namespace_and_pool_that_are_missing_are_named_together() {
    let lost = Job {
        node_pool: "gpu".to_owned(),
        ..job_in_dev()
    };
    let errors = require_for_job(&Stored::default().snapshot(), &lost).unwrap_err();
    assert_eq!(fields(&errors), ["namespace", "node_pool"]);
}

#[test]
fn a_registration_compares_the_default_namespace_after_any_change_of_it() {
    let mut stored = Stored::default();
    let web = builders::service("web", 1);
    let key = Key::Namespace("default".to_owned());
    let absent = Write::RequireAbsent { key: key.clone() };
    assert_eq!(admit(&stored.snapshot(), &web).unwrap(), [absent]);
    // Nothing that only lets it live on has to.
    assert_eq!(require_for_job(&stored.snapshot(), &web).unwrap(), []);
    let modify_index = put_namespace(&mut stored, Namespace::named("default"));
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
    put_namespace(&mut stored, rules);
    let job = job_in_dev();
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
        put_namespace(&mut stored, namespace);
        for name in ["gpu", "gpu-2", "batch"] {
            let key = Key::NodePool(name.to_owned());
            stored.put(key, Entity::NodePool(Box::new(NodePool::named(name))));
        }
        let job = Job {
            node_pool: pool.to_owned(),
            ..job_in_dev()
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
        let job = job_in_dev();
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
    put_namespace(&mut stored, rules);
    assert_eq!(pool(&stored, true), "batch");
    assert_eq!(pool(&stored, false), "default");
}
