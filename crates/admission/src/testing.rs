//! Objects of tests: a namespace and a job in it.

use model::{Job, Namespace};
use state::{Entity, Key};
use test_kit::{Stored, builders};

/// Stores a namespace; returns its modify index.
pub(crate) fn put_namespace(stored: &mut Stored, namespace: Namespace) -> u64 {
    let key = Key::Namespace(namespace.name.clone());
    stored.put(key, Entity::Namespace(Box::new(namespace)))
}

pub(crate) fn dev() -> Namespace {
    Namespace::named("dev")
}

pub(crate) fn deleting_dev() -> Namespace {
    Namespace {
        deleting: true,
        ..dev()
    }
}

/// A service job in the namespace of [`dev`].
pub(crate) fn job_in_dev() -> Job {
    Job {
        namespace: "dev".to_owned(),
        ..builders::service("web", 1)
    }
}
