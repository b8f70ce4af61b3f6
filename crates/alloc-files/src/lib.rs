//! An allocation's files, read for people.
//!
//! Tasks own these directories and may be hostile, while the reader has the agent's rights: [`path`] keeps
//! paths in the allocation and out of secrets, [`directory`] opens what they name without following a link or
//! touching a device, [`list`] returns bounded lists, and [`reader`] reads a file in parts, while it grows,
//! shrinks or is replaced. All of it blocks.

mod directory;
mod error;
mod info;
mod list;
mod path;
mod reader;
#[cfg(test)]
mod tests;

pub use directory::Directory;
pub use error::Error;
pub use info::FileInfo;
pub use list::{ENTRIES_MAX, List};
pub use path::FilePath;
pub use reader::{CHUNK_BYTES, Origin, Reader, Step};
