//! Variables: their names and sizes, and conditional changes.
//!
//! No replica holds variables, so the stored one is an argument, as it was read from etcd. A change
//! compares its modify index and its namespace.

use model::refusal::{Kind, Refusal};
use model::{FieldErrors, SealedText, SealedVariable, Timestamp, VariableItems, VariableKey};
use state::{Entity, Key, Snapshot, Write};

use super::namespaces;

/// Bytes of the names and values of a variable's items. Source: Nomad's limit.
pub const ITEMS_BYTES_MAX: usize = 64 << 10;
/// Characters of a path. Source: Nomad's limit.
const PATH_MAX: usize = 128;
/// The path of variables that tasks read without a policy.
const JOBS_PATH: &str = "nomad/jobs";

/// A stored variable, opened.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredVariable {
    pub items: VariableItems,
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
    pub create_index: u64,
    pub modify_index: u64,
}

/// The reason why a variable stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(
        "variable {variable} has modify index {found} instead of {want}: read it again, and decide \
         whether to change it"
    )]
    CheckIndex {
        variable: VariableKey,
        want: u64,
        found: u64,
    },
    #[error("variable {variable} exists already, with modify index {found}")]
    Exists { variable: VariableKey, found: u64 },
    #[error("variable {variable} does not exist: `kafila var list` shows all")]
    NotFound { variable: VariableKey },
}

impl Refusal for VariableRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::CheckIndex { .. } | Self::Exists { .. } => Kind::Outdated,
            Self::NotFound { .. } => Kind::NotFound,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}

/// Returns what is wrong with a path, and the fix. Source: Nomad's rules.
fn path_problem(path: &str) -> Option<String> {
    let allowed =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '~' | '/');
    if path.is_empty() {
        return Some("missing: want a path such as app/database".to_owned());
    }
    if path.len() > PATH_MAX || !path.chars().all(allowed) {
        return Some(format!(
            "invalid path {path:?}: want 1 to {PATH_MAX} letters, digits, '-', '_', '~' and '/'"
        ));
    }
    if path.split('/').any(str::is_empty) {
        return Some(format!(
            "invalid path {path:?}: want no slash at its start, at its end or beside another one"
        ));
    }
    let parts: Vec<_> = path.split('/').collect();
    let is_free = match parts.as_slice() {
        ["nomad", "jobs", rest @ ..] => rest.len() <= 3,
        ["nomad", "job-templates", _] => true,
        ["nomad", ..] => false,
        _ => true,
    };
    (!is_free).then(|| {
        format!(
            "invalid path {path:?}: paths that begin with nomad are reserved but for \
             {JOBS_PATH}[/JOB[/GROUP[/TASK]]] and nomad/job-templates/NAME"
        )
    })
}

/// Checks the name of a variable.
///
/// # Errors
/// The path or the namespace is invalid.
pub fn check_key(variable: &VariableKey) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    if let Some(problem) = path_problem(&variable.path) {
        errors.push("path", problem);
    }
    if let Some(problem) = model::Namespace::name_problem(&variable.namespace) {
        errors.push("namespace", problem);
    }
    errors.into_result(())
}

/// Checks a variable that is to be stored.
///
/// # Errors
/// All invalid fields.
pub fn check(variable: &VariableKey, items: &VariableItems) -> Result<(), FieldErrors> {
    let mut errors = check_key(variable).err().unwrap_or_default();
    if items.is_empty() {
        errors.push(
            "items",
            "variable missing required Items object: want at least one, as in user=admin",
        );
    }
    if items.contains_key("") {
        errors.push("items", "an item has no name: want one, as in user=admin");
    }
    let bytes: usize = items
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if bytes > ITEMS_BYTES_MAX {
        errors.push(
            "items",
            format!(
                "variables are limited to 64KiB in total size; these items have {bytes} bytes: \
                 split them among several variables"
            ),
        );
    }
    errors.into_result(())
}

/// A request to store a variable.
#[derive(Clone, PartialEq, Eq)]
pub struct PutRequest {
    pub variable: VariableKey,
    pub items: VariableItems,
    /// Stores only if the modify index is this one; 0: only if there is none; `None`: always.
    pub check_index: Option<u64>,
}

/// The decision on storing a variable.
#[derive(Clone, PartialEq)]
pub enum PutDecision {
    /// It has these items already.
    Unchanged(StoredVariable),
    Write(Vec<Write>),
}

/// Decides on storing a variable, whose items are `sealed`.
///
/// # Errors
/// See [`VariableRefusal`].
pub fn put(
    snapshot: &Snapshot,
    stored: Option<&StoredVariable>,
    request: &PutRequest,
    sealed: SealedText,
    now: Timestamp,
) -> Result<PutDecision, VariableRefusal> {
    let variable = &request.variable;
    check(variable, &request.items)?;
    let index = stored.map(|stored| stored.modify_index);
    check_index(index, variable, request.check_index)?;
    let joined = namespaces::require(
        snapshot,
        &variable.namespace,
        "namespace",
        format_args!("variable {:?}", variable.path),
    )?;
    if let Some(stored) = stored.filter(|stored| stored.items == request.items) {
        return Ok(PutDecision::Unchanged(stored.clone()));
    }
    let written = Write::put(
        Key::Variable(variable.clone()),
        index.unwrap_or(0),
        Entity::Variable(Box::new(SealedVariable {
            created_at: stored.map_or(now, |stored| stored.created_at),
            modified_at: now,
            items: sealed,
        })),
    );
    let writes = joined.into_iter().chain([written]).collect();
    Ok(PutDecision::Write(writes))
}

/// Decides on the deletion of a variable with the modify index `stored`; `None`: there is none.
///
/// # Errors
/// There is none, or it has another index.
pub fn delete(
    stored: Option<u64>,
    variable: &VariableKey,
    want: Option<u64>,
) -> Result<Write, VariableRefusal> {
    check_index(stored, variable, want)?;
    let modify_index = stored.ok_or_else(|| VariableRefusal::NotFound {
        variable: variable.clone(),
    })?;
    Ok(Write::Delete {
        key: Key::Variable(variable.clone()),
        modify_index,
    })
}

fn check_index(
    stored: Option<u64>,
    variable: &VariableKey,
    want: Option<u64>,
) -> Result<(), VariableRefusal> {
    let found = stored.unwrap_or(0);
    let variable = variable.clone();
    match want {
        Some(0) if found != 0 => Err(VariableRefusal::Exists { variable, found }),
        Some(want) if want != found => Err(VariableRefusal::CheckIndex {
            variable,
            want,
            found,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
