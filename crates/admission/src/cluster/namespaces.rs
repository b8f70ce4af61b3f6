//! Namespaces: created, changed, deleted in two steps, and joined by jobs and volumes.
//!
//! [`super::deletion`] explains the two steps; `jobs::namespace_rules` applies a namespace's rules
//! to jobs.

use std::fmt;

use model::{FieldErrors, Namespace};
use state::{JobStatus, Snapshot, Write};

use super::change::OneWrite;
use super::deletion::Deletion;
use super::referenced::{self, MAX_NAMED};
use model::refusal::{Kind, Refusal};

/// The reason why a namespace stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    /// Source: Nomad's texts, as far as the comma, here and below.
    #[error("can not delete default namespace, which is always there: stop the jobs in it instead")]
    Default,
    #[error("namespace {name:?} not found")]
    NotFound { name: String },
    #[error("namespace {name:?} has {what} in regions: [global], such as {}", .users.join(", "))]
    InUse {
        name: String,
        what: &'static str,
        users: Vec<String>,
    },
    #[error(
        "namespace {name:?} has variables in regions: [global], {count} in number: `kafila \
         var list -namespace {name}` shows them, `kafila var purge` deletes one"
    )]
    HasVariables { name: String, count: u64 },
    #[error(
        "namespace {name:?} has modify index {found} and not {want}: it has changed since it was \
         read; read it again and retry"
    )]
    CheckIndex { name: String, want: u64, found: u64 },
}

impl Refusal for NamespaceRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) | Self::Default => Kind::Invalid,
            Self::NotFound { .. } => Kind::NotFound,
            Self::InUse { .. } | Self::HasVariables { .. } => Kind::Precondition,
            Self::CheckIndex { .. } => Kind::Outdated,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}

/// Decides on creating a namespace, or on replacing all of it. With a `check_index` only if the
/// namespace has this modify index, 0 if it is not stored. A namespace that is as requested already
/// is never refused, so that a request whose answer was lost can be sent again.
///
/// # Errors
/// It has another index.
pub fn upsert(
    snapshot: &Snapshot,
    namespace: &Namespace,
    check_index: Option<u64>,
) -> Result<OneWrite, NamespaceRefusal> {
    let name = &namespace.name;
    let change = referenced::upsert(snapshot, namespace);
    if let OneWrite::Unchanged { .. } = change {
        return Ok(change);
    }
    let stored = snapshot.namespace(name);
    let found = stored.map_or(0, |stored| stored.modify_index);
    if let Some(want) = check_index.filter(|want| *want != found) {
        let name = name.clone();
        return Err(NamespaceRefusal::CheckIndex { name, want, found });
    }
    Ok(change)
}

/// The variables of a namespace, which no replica holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VariableCount {
    pub count: u64,
    /// The store's revision of the count.
    pub revision: u64,
}

/// Decides on the next step of deleting a namespace.
///
/// A count from before the mark does not show all variables: the mark is written once more then.
///
/// # Errors
/// See [`NamespaceRefusal`].
pub fn delete(
    snapshot: &Snapshot,
    name: &str,
    variables: VariableCount,
) -> Result<Deletion<NamespaceRefusal>, NamespaceRefusal> {
    if name == Namespace::DEFAULT {
        return Err(NamespaceRefusal::Default);
    }
    let Some(stored) = snapshot.namespace(name) else {
        let name = name.to_owned();
        return Err(NamespaceRefusal::NotFound { name });
    };
    let in_use = in_use(snapshot, name).or_else(|| {
        (variables.count > 0).then(|| NamespaceRefusal::HasVariables {
            name: name.to_owned(),
            count: variables.count,
        })
    });
    if in_use.is_none() && stored.value.deleting && variables.revision < stored.modify_index {
        let marked = stored.value.clone();
        return Ok(Deletion::Mark(referenced::update(stored, marked)));
    }
    referenced::delete(stored, in_use)
}

/// Returns the refusal to delete a namespace that something lives in.
fn in_use(snapshot: &Snapshot, name: &str) -> Option<NamespaceRefusal> {
    let jobs = snapshot
        .jobs()
        .filter(|job| job.value.namespace == name)
        .map(|job| job.value.key())
        .filter(|key| snapshot.job_status(key) != Some(JobStatus::Dead))
        .map(|key| key.job_id.to_string());
    // Also those of purged jobs, and those that have not stopped on their nodes yet.
    let allocs = snapshot
        .allocs()
        .filter(|view| &*view.alloc.namespace == name && snapshot.may_run(view))
        .map(|view| view.alloc.id.to_string());
    let volumes = snapshot
        .volumes()
        .filter(|volume| volume.value.namespace == name)
        .map(|volume| volume.value.name.clone());
    let csi = snapshot
        .csi_volumes()
        .filter(|volume| volume.value.namespace == name)
        .map(|volume| volume.value.id.clone());
    let volumes = volumes.chain(csi);
    let found = |what: &'static str, users: Vec<String>| {
        let name = name.to_owned();
        (!users.is_empty()).then_some(NamespaceRefusal::InUse { name, what, users })
    };
    found("non-terminal jobs", jobs.take(MAX_NAMED).collect())
        .or_else(|| found("non-terminal allocations", allocs.take(MAX_NAMED).collect()))
        .or_else(|| found("volumes", volumes.take(MAX_NAMED).collect()))
}

/// Returns the compare of a transaction that joins a namespace; `None`: the default namespace, which
/// is never deleted.
///
/// # Errors
/// There is no such namespace, or it is being deleted. The error is about `field`, and names the
/// object that joins (`joining`, as in `job "web"`).
pub fn require(
    snapshot: &Snapshot,
    name: &str,
    field: &str,
    joining: impl fmt::Display,
) -> Result<Option<Write>, FieldErrors> {
    if name == Namespace::DEFAULT {
        return Ok(None);
    }
    let mut errors = FieldErrors::default();
    match snapshot.namespace(name) {
        Some(stored) if !stored.value.deleting => return Ok(Some(referenced::unchanged(stored))),
        Some(_) => errors.push(
            field,
            format!("{joining} is in namespace {name:?}, which is being deleted: want another"),
        ),
        // Source: Nomad's text.
        None => errors.push(
            field,
            format!(
                "{joining} is in nonexistent namespace {name:?}: want one of 'kafila namespace list', \
                 or make it with 'kafila namespace apply {name}'"
            ),
        ),
    }
    Err(errors)
}

#[cfg(test)]
mod tests;
