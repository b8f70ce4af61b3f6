//! Reader of one file, in parts of bounded size, also while it grows, shrinks or is replaced.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use crate::directory::Directory;
use crate::error::Error;
use crate::path::FilePath;

/// The most bytes of one part. Source: Nomad's public frame size.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// The start of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Bytes from the start of the file.
    Start(u64),
    /// Bytes back from its end.
    End(u64),
}

/// The next finding of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Data(Vec<u8>),
    /// Nothing yet.
    AtEnd,
    /// The file has become shorter than what was read; the next step begins at its start.
    Truncated,
    /// Another file has its name; the next step begins at the start of that one.
    Replaced,
    /// Nothing has its name, and all of it is read. It may come back: a rotation renames first.
    Missing,
}

/// A reader of one file.
#[derive(Debug)]
pub struct Reader {
    directory: Directory,
    path: FilePath,
    file: File,
    /// Device and number of the open file.
    id: (u64, u64),
    position: u64,
}

impl Reader {
    /// # Errors
    /// There is no such regular file.
    pub fn open(directory: Directory, path: FilePath, origin: Origin) -> Result<Self, Error> {
        let (file, found) = directory.open_file(&path)?;
        let position = match origin {
            Origin::Start(offset) => offset.min(found.len()),
            Origin::End(offset) => found.len().saturating_sub(offset),
        };
        Ok(Self {
            directory,
            path,
            id: id(&found),
            file,
            position,
        })
    }

    /// Returns the place in the file behind what was read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads on, at most `limit` bytes; with `follow` also looks whether the file is still the one of its name.
    ///
    /// # Errors
    /// The file, or the one that replaces it, cannot be read.
    pub fn step(&mut self, limit: u64, follow: bool) -> Result<Step, Error> {
        let data = self.read(limit)?;
        if !data.is_empty() {
            return Ok(Step::Data(data));
        }
        if !follow {
            return Ok(Step::AtEnd);
        }
        let length = self.file.metadata().map(|found| found.len());
        if length.map_err(|error| Error::io(&self.path, error))? < self.position {
            self.position = 0;
            return Ok(Step::Truncated);
        }
        let next = match self.directory.open_file(&self.path) {
            Ok((_, found)) if id(&found) == self.id => return Ok(Step::AtEnd),
            next => next,
        };
        // Its last bytes may have come between the read and the look.
        let rest = self.read(limit)?;
        if !rest.is_empty() {
            return Ok(Step::Data(rest));
        }
        match next {
            Ok((file, found)) => {
                (self.file, self.id, self.position) = (file, id(&found), 0);
                Ok(Step::Replaced)
            }
            Err(Error::NotFound { .. } | Error::NotDirectory { .. }) => Ok(Step::Missing),
            Err(error) => Err(error),
        }
    }

    fn read(&mut self, limit: u64) -> Result<Vec<u8>, Error> {
        let most = usize::try_from(limit).map_or(CHUNK_BYTES, |limit| limit.min(CHUNK_BYTES));
        let mut data = vec![0; most];
        let read = self.file.read_at(&mut data, self.position);
        let count = read.map_err(|error| Error::io(&self.path, error))?;
        data.truncate(count);
        self.position += u64::try_from(count).unwrap_or(u64::MAX);
        Ok(data)
    }
}

fn id(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}
