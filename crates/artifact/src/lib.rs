//! Rules for artifacts of tasks: files that a node downloads before a task starts.
//!
//! Pure: no request, no file. In reading order: [`Source`] is a job's source with its options, read into
//! a getter; [`Checksum`] and [`Archive`] are parts of it; [`entry`] decides
//! which entries of an archive may be written, and [`Budget`] how much of it.
//!
//! Source: the forms of sources are those of Nomad's public documentation.

mod archive;
mod budget;
mod checksum;
pub mod entry;
mod getter;
mod source;

pub use archive::{Archive, Compression};
pub use budget::{Budget, BudgetExceeded};
pub use checksum::{Algorithm, Checksum, Digest};
pub use getter::{Getter, Git, S3Keys, S3Object};
pub use source::{Problem, Source};
