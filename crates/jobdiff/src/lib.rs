//! The diff of two jobs, field by field, and its effects on their allocations.
//!
//! Pure. Jobs are compared in the JSON of the HTTP API, defaults filled in, so a new field of a job
//! shows here by its JSON name without further code. In reading order: `tree` is the diff; `shape`
//! turns JSON into fields and objects by name; `names` lists the exceptions; `compare` finds the
//! differences of two shapes; `job` puts the tree together; `annotate` adds the scheduler's updates.

mod annotate;
mod compare;
mod job;
mod names;
mod shape;
mod tree;

pub use annotate::{GroupUpdates, annotate};
pub use job::diff;
pub use tree::{DiffType, FieldDiff, JobDiff, ObjectDiff, TaskDiff, TaskGroupDiff};
