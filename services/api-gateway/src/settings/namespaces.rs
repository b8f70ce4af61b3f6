//! Namespaces: created, changed, deleted, joined by jobs and volumes, and what they let jobs ask for.
//!
//! **Invariant**: what joins a namespace compares the namespace's key in its own transaction, as with
//! node pools and for the same reason: so a namespace is deleted in two steps, a mark and the
//! deletion. A registration compares the default namespace, too, although nobody can delete it:
//! once whoever changes what it allows has the answer, nothing more comes in by the old rules.

use std::borrow::Cow;
use std::fmt;

use model::namespace::NodePoolRules;
use model::{ClientStatus, FieldErrors, Indexed, Job, Namespace, NodeStatus};
use placement::glob_matches;
use state::{AllocView, Entity, JobStatus, Key, Snapshot};

use super::node_pools;
use crate::writes::Write;

/// How many jobs, allocations or volumes that stand in the way are named.
const MAX_NAMED: usize = 5;

/// Why a namespace stays as it is. Final only when the snapshot was as new as the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    /// Source: Nomad's texts, as far as the comma, here and below.
    #[error("can not delete default namespace")]
    Default,
    #[error("namespace {name:?} not found")]
    NotFound { name: String },
    #[error("namespace {name:?} has {what} in regions: [global], such as {}", Named(.those))]
    InUse {
        name: String,
        what: &'static str,
        those: Vec<String>,
    },
    #[error(
        "namespace {name:?} has modify index {found} and not {want}: somebody has changed it \
         meanwhile"
    )]
    CheckIndex { name: String, want: u64, found: u64 },
}

/// Lists the first few.
struct Named<'a>(&'a [String]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// What creating or changing a namespace comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// So it is already.
    Unchanged {
        modify_index: u64,
    },
    Write(Box<Write>),
}

/// Decides on creating a namespace, or on replacing all that is known of it; `check_index`: only if
/// it has this modify index, 0 if it is not stored, or is as it shall be already: so that what was
/// carried out without an answer can be asked for again.
///
/// # Errors
/// It has another index.
pub fn upsert(
    snapshot: &Snapshot,
    namespace: &Namespace,
    check_index: Option<u64>,
) -> Result<Change, Refusal> {
    let name = &namespace.name;
    let stored = snapshot.namespace(name);
    if let Some(stored) = stored.filter(|stored| stored.value == *namespace) {
        let modify_index = stored.modify_index;
        return Ok(Change::Unchanged { modify_index });
    }
    let found = stored.map_or(0, |stored| stored.modify_index);
    if let Some(want) = check_index.filter(|want| *want != found) {
        let name = name.clone();
        return Err(Refusal::CheckIndex { name, want, found });
    }
    let write = match stored {
        Some(stored) => update(stored, namespace.clone()),
        None => Write::Create {
            key: Key::Namespace(name.clone()),
            entity: Entity::Namespace(Box::new(namespace.clone())),
        },
    };
    Ok(Change::Write(Box::new(write)))
}

/// The next step of a deletion.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion {
    /// To be decided on again once this is written.
    Mark(Write),
    Delete(Write),
    /// Refused after all; this takes the mark back.
    TakeBack {
        write: Write,
        refusal: Refusal,
    },
}

/// Decides on the next step of deleting a namespace.
///
/// # Errors
/// See [`Refusal`].
pub fn delete(snapshot: &Snapshot, name: &str) -> Result<Deletion, Refusal> {
    if name == Namespace::DEFAULT {
        return Err(Refusal::Default);
    }
    let name = name.to_owned();
    let Some(stored) = snapshot.namespace(&name) else {
        return Err(Refusal::NotFound { name });
    };
    let is_marked = stored.value.deleting;
    match in_use(snapshot, &name) {
        None if is_marked => Ok(Deletion::Delete(Write::Delete {
            key: Key::Namespace(name),
            modify_index: stored.modify_index,
        })),
        None => Ok(Deletion::Mark(update(stored, marked(stored, true)))),
        Some(refusal) if is_marked => Ok(Deletion::TakeBack {
            write: update(stored, marked(stored, false)),
            refusal,
        }),
        Some(refusal) => Err(refusal),
    }
}

/// Says what is in a namespace that keeps it from being deleted; `None`: nothing.
fn in_use(snapshot: &Snapshot, name: &str) -> Option<Refusal> {
    let jobs = snapshot
        .jobs()
        .filter(|job| job.value.namespace == name)
        .map(|job| job.value.key())
        .filter(|key| snapshot.job_status(key) != Some(JobStatus::Dead))
        .map(|key| key.job_id.to_string());
    // Those of purged jobs, and those that were told to stop and have not ended on their nodes.
    let allocs = snapshot
        .allocs()
        .filter(|view| &*view.alloc.namespace == name && may_run(snapshot, view))
        .map(|view| view.alloc.id.to_string());
    let volumes = snapshot
        .volumes()
        .filter(|volume| volume.value.namespace == name)
        .map(|volume| volume.value.name.clone());
    let found = |what: &'static str, those: Vec<String>| {
        let name = name.to_owned();
        (!those.is_empty()).then_some(Refusal::InUse { name, what, those })
    };
    found("non-terminal jobs", jobs.take(MAX_NAMED).collect())
        .or_else(|| found("non-terminal allocations", allocs.take(MAX_NAMED).collect()))
        .or_else(|| found("volumes", volumes.take(MAX_NAMED).collect()))
}

/// Tells whether an allocation runs, or may: being told to stop is not having stopped, but nobody
/// waits for the word of a node that is down or gone and never said that it runs.
fn may_run(snapshot: &Snapshot, view: &AllocView) -> bool {
    if view.is_client_terminal() {
        return false;
    }
    let node = snapshot.node(view.alloc.node_id);
    let is_reachable = node.is_some_and(|node| node.value.status != NodeStatus::Down);
    !view.is_terminal() || is_reachable || view.client_status() == ClientStatus::Running
}

/// Returns what whoever joins a namespace compares of it; `None`: it is always there.
///
/// # Errors
/// There is no such namespace, or not for long: said of `field`, by `who`, as in `job "web"`.
pub fn join(
    snapshot: &Snapshot,
    name: &str,
    field: &str,
    who: impl fmt::Display,
) -> Result<Option<Write>, FieldErrors> {
    if name == Namespace::DEFAULT {
        return Ok(None);
    }
    let mut errors = FieldErrors::default();
    match snapshot.namespace(name) {
        Some(stored) if !stored.value.deleting => return Ok(Some(unchanged(stored))),
        Some(_) => errors.push(
            field,
            format!("{who} is in namespace {name:?}, which is being deleted: want another"),
        ),
        // Source: Nomad's text.
        None => errors.push(
            field,
            format!(
                "{who} is in nonexistent namespace {name:?}: want one of 'kafila namespace list', \
                 or make it with 'kafila namespace apply {name}'"
            ),
        ),
    }
    Err(errors)
}

/// Returns what is compared of a job's namespace and node pool by whatever lets the job live on.
///
/// # Errors
/// One of them is missing, or not there for long.
pub fn join_as_job(snapshot: &Snapshot, job: &Job) -> Result<Vec<Write>, FieldErrors> {
    let who = format!("job {:?}", job.id);
    let mut errors = FieldErrors::default();
    let mut writes = Vec::new();
    for joined in [
        join(snapshot, &job.namespace, "namespace", who),
        node_pools::join_as_job(snapshot, job),
    ] {
        match joined {
            Ok(write) => writes.extend(write),
            Err(found) => errors.0.extend(found.0),
        }
    }
    errors.into_result(writes)
}

/// Returns what a registration of `job` compares: as [`join_as_job`], and the rules of its
/// namespace.
///
/// # Errors
/// All that is missing or not allowed.
pub fn admit(snapshot: &Snapshot, job: &Job) -> Result<Vec<Write>, FieldErrors> {
    let mut errors = FieldErrors::default();
    let mut writes = join_as_job(snapshot, job).unwrap_or_else(|found| {
        errors = found;
        Vec::new()
    });
    match snapshot.namespace(&job.namespace) {
        Some(stored) => {
            check_rules(&stored.value, job, &mut errors);
            let compare = unchanged(stored);
            if !writes.contains(&compare) {
                writes.push(compare);
            }
        }
        // Any other was refused above.
        None => writes.push(Write::RequireAbsent {
            key: Key::Namespace(job.namespace.clone()),
        }),
    }
    errors.into_result(writes)
}

fn check_rules(namespace: &Namespace, job: &Job, errors: &mut FieldErrors) {
    let name = &namespace.name;
    let capabilities = &namespace.capabilities;
    for group in &job.task_groups {
        for task in &group.tasks {
            let driver = &task.driver;
            if capabilities.allow_driver(driver) {
                continue;
            }
            let enabled = &capabilities.enabled_task_drivers;
            let mut enabled = enabled.iter().filter(|it| capabilities.allow_driver(it));
            let instead = match enabled.next() {
                Some(first) => enabled.fold(first.clone(), |all, one| format!("{all}, {one}")),
                None => "another".to_owned(),
            };
            let (group, task) = (&group.name, &task.name);
            errors.push(
                format!("group[{group:?}].task[{task:?}].driver"),
                format!("{driver:?} is not allowed in namespace {name:?}: want {instead}"),
            );
        }
    }
    let (rules, pool) = (&namespace.node_pools, &job.node_pool);
    if !allow_pool(rules, pool) {
        let instead = match &rules.allowed {
            Some(allowed) if !allowed.is_empty() => {
                format!("{} or {}", rules.default_pool(), allowed.join(", "))
            }
            Some(_) => rules.default_pool().to_owned(),
            None => format!("one that is none of {}", rules.denied.join(", ")),
        };
        errors.push(
            "node_pool",
            format!("{pool:?} is not allowed in namespace {name:?}: want {instead}"),
        );
    }
}

fn allow_pool(rules: &NodePoolRules, pool: &str) -> bool {
    let is_in = |patterns: &[String]| patterns.iter().any(|it| glob_matches(it, pool));
    if pool == rules.default_pool() {
        return true;
    }
    match &rules.allowed {
        Some(allowed) => is_in(allowed),
        None => !is_in(&rules.denied),
    }
}

/// Returns the job as it is registered: one that names no node pool (`names_none`) is in its
/// namespace's.
pub fn with_node_pool<'a>(snapshot: &Snapshot, job: &'a Job, names_none: bool) -> Cow<'a, Job> {
    let stored = snapshot.namespace(&job.namespace);
    match stored.map(|stored| stored.value.node_pools.default_pool()) {
        Some(pool) if names_none && pool != job.node_pool => Cow::Owned(Job {
            node_pool: pool.to_owned(),
            ..job.clone()
        }),
        _ => Cow::Borrowed(job),
    }
}

fn marked(stored: &Indexed<Namespace>, deleting: bool) -> Namespace {
    Namespace {
        deleting,
        ..stored.value.clone()
    }
}

fn update(stored: &Indexed<Namespace>, namespace: Namespace) -> Write {
    Write::Update {
        key: Key::Namespace(namespace.name.clone()),
        modify_index: stored.modify_index,
        entity: Entity::Namespace(Box::new(namespace)),
    }
}

fn unchanged(stored: &Indexed<Namespace>) -> Write {
    Write::RequireUnchanged {
        key: Key::Namespace(stored.value.name.clone()),
        modify_index: stored.modify_index,
    }
}

#[cfg(test)]
mod tests;
