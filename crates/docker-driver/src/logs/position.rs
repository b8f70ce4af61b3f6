//! Position of the copied output of a container, in memory and on disk.

use serde::{Deserialize, Serialize};
use task_drivers::log_files::FilePosition;

/// Time of a message, as the engine writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Moment {
    pub(super) second: i64,
    pub(super) nanosecond: i32,
}

impl Moment {
    pub(super) fn now() -> Self {
        jiff::Timestamp::now().into()
    }
}

impl From<jiff::Timestamp> for Moment {
    fn from(time: jiff::Timestamp) -> Self {
        Self {
            second: time.as_second(),
            nanosecond: time.subsec_nanosecond(),
        }
    }
}

/// The last message of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Last {
    /// `None`: there is none.
    pub(super) at: Option<Moment>,
    /// Number of messages of that time.
    pub(super) count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub(crate) struct Position {
    /// Standard output's, then standard error's.
    pub(super) last: [Last; 2],
    /// Ends of the log files, in the same order.
    pub(super) files: [FilePosition; 2],
}

/// A position on disk.
#[derive(Deserialize)]
struct Stored {
    last: Option<[Last; 2]>,
    /// From agents that kept one position for both streams.
    at: Option<Moment>,
    #[serde(default)]
    count: u64,
    files: [FilePosition; 2],
}

impl From<Stored> for Position {
    fn from(stored: Stored) -> Self {
        let of_both = Last {
            at: stored.at,
            count: stored.count,
        };
        Self {
            last: stored.last.unwrap_or([of_both; 2]),
            files: stored.files,
        }
    }
}
