//! Refusals and failures; each names the path as the user knows it.

use std::fmt::Display;
use std::io;

use nix::errno::Errno;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "path {path:?} escapes the allocation's directory: want a path below it, as in alloc/logs"
    )]
    Escapes { path: String },
    #[error("{path:?} holds secrets of a task, which are not shown")]
    Secret { path: String },
    #[error("there is no {path:?} in the allocation's directory")]
    NotFound { path: String },
    #[error("{path:?} is a directory: list it, or name a file in it")]
    IsDirectory { path: String },
    #[error("{path:?} is no directory")]
    NotDirectory { path: String },
    #[error(
        "{path:?} is or contains a symbolic link, which is not followed: name the file that it leads to"
    )]
    Link { path: String },
    #[error("{path:?} is {kind}, not a regular file")]
    NotRegular { path: String, kind: &'static str },
    #[error(
        "{path:?} is one of several names of a file that not everyone may read: it may be a file of the node, \
         and is not shown"
    )]
    Linked { path: String },
    #[error("cannot read {path:?}: {source}")]
    Io { path: String, source: io::Error },
}

impl Error {
    /// Returns the meaning of an error of the system at a path.
    pub(crate) fn of(path: &impl Display, error: Errno) -> Self {
        let path = path.to_string();
        match error {
            Errno::ENOENT => Self::NotFound { path },
            Errno::ELOOP => Self::Link { path },
            Errno::ENOTDIR => Self::NotDirectory { path },
            // Beyond the directory, through a mount or a race with a rename.
            Errno::EXDEV => Self::Escapes { path },
            error => Self::Io {
                path,
                source: error.into(),
            },
        }
    }

    pub(crate) fn io(path: &impl Display, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(number) => Self::of(path, Errno::from_raw(number)),
            None => Self::Io {
                path: path.to_string(),
                source,
            },
        }
    }
}
