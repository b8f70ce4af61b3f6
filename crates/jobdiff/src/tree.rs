//! The diff of two jobs: a tree of additions, deletions and edits.
//!
//! Every list is sorted by name; objects of one name by their content.

use std::collections::BTreeMap;

/// The change of one part of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiffType {
    /// Unchanged.
    #[default]
    None,
    Added,
    Deleted,
    Edited,
}

impl DiffType {
    pub const ALL: [Self; 4] = [Self::None, Self::Added, Self::Deleted, Self::Edited];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Added => "Added",
            Self::Deleted => "Deleted",
            Self::Edited => "Edited",
        }
    }
}

/// One value. Numbers and booleans as text, durations in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldDiff {
    /// Entries of maps and lists have their key in the name, as in `Env[PORT]`.
    pub name: String,
    pub diff_type: DiffType,
    /// Empty when it was added.
    pub old: String,
    /// Empty when it was deleted.
    pub new: String,
    /// Effects on allocations, as in `forces create`.
    pub annotations: Vec<String>,
}

/// A block of a job file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectDiff {
    pub name: String,
    pub diff_type: DiffType,
    pub fields: Vec<FieldDiff>,
    pub objects: Vec<ObjectDiff>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDiff {
    pub name: String,
    pub diff_type: DiffType,
    pub fields: Vec<FieldDiff>,
    pub objects: Vec<ObjectDiff>,
    /// Effects on allocations, as in `forces create/destroy update`.
    pub annotations: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskGroupDiff {
    pub name: String,
    pub diff_type: DiffType,
    pub fields: Vec<FieldDiff>,
    pub objects: Vec<ObjectDiff>,
    pub tasks: Vec<TaskDiff>,
    /// Kind of update, as in `create` → number of allocations; never 0.
    pub updates: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobDiff {
    pub id: String,
    pub diff_type: DiffType,
    pub fields: Vec<FieldDiff>,
    pub objects: Vec<ObjectDiff>,
    pub task_groups: Vec<TaskGroupDiff>,
}
