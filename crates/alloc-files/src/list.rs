//! Lists of directories, bounded: a task may fill one with millions of files.

use std::fs;
use std::os::fd::AsRawFd as _;

use crate::directory::Directory;
use crate::error::Error;
use crate::info::FileInfo;
use crate::path::FilePath;

/// The most files of one list: about 1 MiB of usual names, and 3 MiB of the longest, which one message of gRPC
/// takes.
pub const ENTRIES_MAX: usize = 10_000;

/// A directory's files, ordered by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    pub files: Vec<FileInfo>,
    /// The directory has more than [`ENTRIES_MAX`].
    pub is_truncated: bool,
}

impl Directory {
    /// Lists a directory. A name that is not UTF-8 is shown with replacement characters.
    ///
    /// # Errors
    /// There is no such directory.
    pub fn list(&self, path: &FilePath) -> Result<List, Error> {
        let directory = self.open_directory(path)?;
        let failed = |error| Error::io(path, error);
        let entries = fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        let mut list = List::default();
        for entry in entries.map_err(failed)? {
            if list.files.len() == ENTRIES_MAX {
                list.is_truncated = true;
                break;
            }
            let entry = entry.map_err(failed)?;
            // Of a link its own facts; a file that is removed meanwhile is left out.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            list.files.push(FileInfo::new(name, &found));
        }
        list.files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(list)
    }
}
