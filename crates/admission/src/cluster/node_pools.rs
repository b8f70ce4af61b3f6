//! Node pools: created, changed, deleted in two steps, and joined by nodes and jobs.
//!
//! [`super::deletion`] explains the two steps.

use model::{FieldErrors, Job, NodePool};
use state::{JobStatus, Snapshot, Write};

use super::change::OneWrite;
use super::deletion::Deletion;
use super::referenced::{self, MAX_NAMED, Referenced as _};
use model::refusal::{Kind, Refusal};

/// The reason why a pool stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodePoolRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    /// Source: Nomad's texts, as far as the colon or comma, here and below.
    #[error("{doing} node pool {name:?} is not allowed: it is built in")]
    BuiltIn { doing: &'static str, name: String },
    #[error("node pool {name:?} not found")]
    NotFound { name: String },
    #[error("node pool {name:?} has nodes in regions: [global], such as {}", .nodes.join(", "))]
    HasNodes { name: String, nodes: Vec<String> },
    #[error(
        "node pool {name:?} has non-terminal jobs in regions: [global], such as {}",
        .jobs.join(", ")
    )]
    HasJobs { name: String, jobs: Vec<String> },
}

impl Refusal for NodePoolRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) | Self::BuiltIn { .. } => Kind::Invalid,
            Self::NotFound { .. } => Kind::NotFound,
            Self::HasNodes { .. } | Self::HasJobs { .. } => Kind::Precondition,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}

/// Decides on creating a pool, or on replacing all of it.
///
/// # Errors
/// It is built in.
pub fn upsert(snapshot: &Snapshot, pool: &NodePool) -> Result<OneWrite, NodePoolRefusal> {
    refuse_built_in("modifying", &pool.name)?;
    Ok(referenced::upsert(snapshot, pool))
}

/// Decides on the next step of deleting a pool.
///
/// # Errors
/// See [`NodePoolRefusal`].
pub fn delete(
    snapshot: &Snapshot,
    name: &str,
) -> Result<Deletion<NodePoolRefusal>, NodePoolRefusal> {
    refuse_built_in("deleting", name)?;
    let Some(stored) = snapshot.node_pool(name) else {
        let name = name.to_owned();
        return Err(NodePoolRefusal::NotFound { name });
    };
    referenced::delete(stored, in_use(snapshot, name))
}

/// Returns the refusal to delete a pool that has nodes or jobs.
fn in_use(snapshot: &Snapshot, name: &str) -> Option<NodePoolRefusal> {
    let nodes = snapshot
        .nodes()
        .filter(|node| node.value.node_pool == name)
        .map(|node| node.value.name.clone());
    let nodes: Vec<String> = nodes.take(MAX_NAMED).collect();
    let name = name.to_owned();
    if !nodes.is_empty() {
        return Some(NodePoolRefusal::HasNodes { name, nodes });
    }
    let jobs = snapshot
        .jobs()
        .filter(|job| job.value.node_pool == name)
        .map(|job| job.value.key())
        .filter(|key| snapshot.job_status(key) != Some(JobStatus::Dead))
        .map(|key| key.job_id.to_string());
    let jobs: Vec<String> = jobs.take(MAX_NAMED).collect();
    (!jobs.is_empty()).then_some(NodePoolRefusal::HasJobs { name, jobs })
}

/// Returns the compare of a transaction that registers `job` in its pool; `None`: the pool is built
/// in.
///
/// # Errors
/// There is no such pool, or it is being deleted.
pub fn require_for_job(snapshot: &Snapshot, job: &Job) -> Result<Option<Write>, FieldErrors> {
    let name = &job.node_pool;
    if NodePool::is_built_in(name) {
        return Ok(None);
    }
    let mut errors = FieldErrors::default();
    let id = &job.id;
    match snapshot.node_pool(name) {
        Some(stored) if !stored.value.deleting => return Ok(Some(referenced::unchanged(stored))),
        Some(_) => errors.push(
            "node_pool",
            format!("job {id:?} is in node pool {name:?}, which is being deleted: want another"),
        ),
        // Source: Nomad's text.
        None => errors.push(
            "node_pool",
            format!(
                "job {id:?} is in nonexistent node pool {name:?}: want one of 'kafila node pool \
                 list', or make it with 'kafila node pool apply'"
            ),
        ),
    }
    Err(errors)
}

/// Returns the write or compare of a transaction that registers a node in a pool; `None`: the pool
/// is built in.
///
/// A missing pool is created, and a pool that is being deleted stays.
pub fn require_for_node(snapshot: &Snapshot, name: &str) -> Option<Write> {
    if NodePool::is_built_in(name) {
        return None;
    }
    Some(match snapshot.node_pool(name) {
        None => referenced::create(NodePool::named(name)),
        Some(stored) if stored.value.deleting => {
            referenced::update(stored, stored.value.clone().marked(false))
        }
        Some(stored) => referenced::unchanged(stored),
    })
}

/// Tells whether a node's pool has to be created although the node's record is unchanged.
pub fn is_missing(snapshot: &Snapshot, name: &str) -> bool {
    !NodePool::is_built_in(name) && snapshot.node_pool(name).is_none()
}

fn refuse_built_in(doing: &'static str, name: &str) -> Result<(), NodePoolRefusal> {
    if NodePool::is_built_in(name) {
        let name = name.to_owned();
        return Err(NodePoolRefusal::BuiltIn { doing, name });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::{Algorithm, PoolConfiguration};
    use state::{Entity, Key};
    use test_kit::{Stored, builders};

    use super::super::referenced::create;
    use super::*;

    fn put(stored: &mut Stored, pool: NodePool) -> u64 {
        let key = Key::NodePool(pool.name.clone());
        stored.put(key, Entity::NodePool(Box::new(pool)))
    }

    fn gpu() -> NodePool {
        NodePool::named("gpu")
    }

    fn deleting() -> NodePool {
        NodePool {
            deleting: true,
            ..gpu()
        }
    }

    fn job() -> Job {
        Job {
            node_pool: "gpu".to_owned(),
            ..builders::service("web", 1)
        }
    }

    #[test]
    fn a_pool_is_created_then_replaced_and_not_written_for_nothing() {
        let mut stored = Stored::default();
        let created = upsert(&stored.snapshot(), &gpu()).unwrap();
        assert_eq!(created, OneWrite::Write(Box::new(create(gpu()))));
        let modify_index = put(&mut stored, gpu());
        let again = upsert(&stored.snapshot(), &gpu()).unwrap();
        assert_eq!(again, OneWrite::Unchanged { modify_index });
        let pool = NodePool {
            scheduler_config: PoolConfiguration {
                algorithm: Some(Algorithm::Spread),
                ..PoolConfiguration::default()
            },
            ..gpu()
        };
        let changed = upsert(&stored.snapshot(), &pool).unwrap();
        let OneWrite::Write(write) = changed else {
            panic!("{changed:?}")
        };
        assert!(
            matches!(*write, Write::Update { modify_index: index, .. } if index == modify_index)
        );
        // To apply a pool that was about to be deleted keeps it.
        put(&mut stored, deleting());
        let kept = upsert(&stored.snapshot(), &gpu()).unwrap();
        assert!(matches!(kept, OneWrite::Write(_)));
    }

    #[test]
    fn the_built_in_pools_stay_as_they_are() {
        let snapshot = Stored::default().snapshot();
        for name in ["all", "default"] {
            let refusal = upsert(&snapshot, &NodePool::named(name)).unwrap_err();
            let text = format!("modifying node pool {name:?} is not allowed");
            assert!(refusal.to_string().starts_with(&text), "{refusal}");
            let refusal = delete(&snapshot, name).unwrap_err();
            let text = format!("deleting node pool {name:?} is not allowed");
            assert!(refusal.to_string().starts_with(&text), "{refusal}");
        }
    }

    #[test]
    fn a_pool_is_marked_and_then_deleted() {
        let mut stored = Stored::default();
        let missing = delete(&stored.snapshot(), "gpu").unwrap_err();
        assert_eq!(missing.to_string(), "node pool \"gpu\" not found");
        put(&mut stored, gpu());
        match delete(&stored.snapshot(), "gpu").unwrap() {
            Deletion::Mark(Write::Update { entity, .. }) => {
                assert_eq!(entity, Entity::NodePool(Box::new(deleting())));
            }
            other => panic!("{other:?}"),
        }
        let modify_index = put(&mut stored, deleting());
        let key = Key::NodePool("gpu".to_owned());
        let write = Write::Delete { key, modify_index };
        let last = delete(&stored.snapshot(), "gpu").unwrap();
        assert_eq!(last, Deletion::Delete(vec![write]));
    }

    #[test]
    fn nodes_and_jobs_that_have_not_ended_keep_a_pool() {
        for is_node in [true, false] {
            let mut stored = Stored::default();
            let join = |stored: &mut Stored| {
                if is_node {
                    let mut node = builders::node(1);
                    node.node_pool = "gpu".to_owned();
                    stored.put_node(&node);
                } else {
                    stored.put_job(&job());
                }
            };
            put(&mut stored, gpu());
            join(&mut stored);
            let refusal = delete(&stored.snapshot(), "gpu").unwrap_err();
            let text = refusal.to_string();
            let expected = if is_node {
                "node pool \"gpu\" has nodes in regions: [global], such as n1"
            } else {
                "node pool \"gpu\" has non-terminal jobs in regions: [global], such as web"
            };
            assert_eq!(text, expected);
            // It was created between the first look and the mark.
            put(&mut stored, deleting());
            match delete(&stored.snapshot(), "gpu").unwrap() {
                Deletion::TakeBack {
                    write: Write::Update { entity, .. },
                    refusal: found,
                } => {
                    assert_eq!(entity, Entity::NodePool(Box::new(gpu())));
                    assert_eq!(found, refusal);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_job_that_has_ended_keeps_no_pool() {
        let mut stored = Stored::default();
        put(&mut stored, gpu());
        let stopped = Job {
            stop: true,
            ..job()
        };
        stored.put_job(&stopped);
        let step = delete(&stored.snapshot(), "gpu").unwrap();
        assert!(matches!(step, Deletion::Mark(_)), "{step:?}");
    }

    #[test]
    fn a_job_joins_a_pool_that_is_there_to_stay() {
        let mut stored = Stored::default();
        let text = |stored: &Stored| {
            let errors = require_for_job(&stored.snapshot(), &job()).unwrap_err();
            assert_eq!(errors.0[0].field, "node_pool");
            errors.0[0].message.clone()
        };
        let missing = text(&stored);
        let expected = "job \"web\" is in nonexistent node pool \"gpu\"";
        assert!(missing.starts_with(expected), "{missing}");
        put(&mut stored, deleting());
        assert!(text(&stored).contains("which is being deleted"));
        let modify_index = put(&mut stored, gpu());
        let key = Key::NodePool("gpu".to_owned());
        let compare = Write::RequireUnchanged { key, modify_index };
        let joined = require_for_job(&stored.snapshot(), &job()).unwrap();
        assert_eq!(joined, Some(compare));
        let everywhere = Job {
            node_pool: "all".to_owned(),
            ..job()
        };
        assert_eq!(require_for_job(&stored.snapshot(), &everywhere), Ok(None));
    }

    #[test]
    fn a_node_makes_its_pool_and_keeps_one_that_was_to_go() {
        let mut stored = Stored::default();
        assert_eq!(require_for_node(&stored.snapshot(), "default"), None);
        assert!(is_missing(&stored.snapshot(), "gpu"));
        assert!(!is_missing(&stored.snapshot(), "default"));
        let made = require_for_node(&stored.snapshot(), "gpu");
        assert_eq!(made, Some(create(gpu())));
        put(&mut stored, deleting());
        match require_for_node(&stored.snapshot(), "gpu") {
            Some(Write::Update { entity, .. }) => {
                assert_eq!(entity, Entity::NodePool(Box::new(gpu())));
            }
            other => panic!("{other:?}"),
        }
        put(&mut stored, gpu());
        let compared = require_for_node(&stored.snapshot(), "gpu");
        assert!(matches!(compared, Some(Write::RequireUnchanged { .. })));
    }
}
