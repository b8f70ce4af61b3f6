//! What differs between two jobs, field by field, and what that does to their allocations.
//!
//! Pure. In reading order: `tree` is what a difference looks like; `shape` is the form that jobs
//! are compared in, fields and objects by name; `job`, `group`, `task`, `launches` and `policies` say what the
//! parts of a job are in that form; `compare` finds the differences of two shapes, whatever they
//! are shapes of; `annotate` adds what the scheduler would do about them.
//!
//! The names are Nomad's, because programs look for them. Every part of the model is taken apart
//! by name, so a field that is added there does not compile here until somebody says what it is
//! called.

mod annotate;
mod compare;
mod group;
mod job;
mod launches;
mod policies;
mod shape;
mod task;
mod tree;

pub use annotate::{GroupUpdates, annotate};
pub use job::diff;
pub use tree::{DiffType, FieldDiff, JobDiff, ObjectDiff, TaskDiff, TaskGroupDiff};
