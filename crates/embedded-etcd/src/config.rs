//! Configuration of a store: storage, limits and intervals.

use std::{path::PathBuf, time::Duration};

/// Operations per txn, twice the limit of Kafila's own txns (1,000).
pub const DEFAULT_MAX_TXN_OPS: usize = 2_048;

/// Bytes per write request, four times the limit of Kafila's own txns (1 MiB).
pub const DEFAULT_MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// Interval of progress reports on quiet watches that requested them; etcd's default.
pub const DEFAULT_WATCH_PROGRESS_INTERVAL: Duration = Duration::from_secs(600);

/// Options of a store. The defaults are those of Kafila's own etcd.
#[derive(Clone, Debug)]
pub struct Config {
    /// Storage of the data; in memory by default.
    pub storage: Storage,
    /// Compares, and operations per branch, that one txn may hold (etcd's `--max-txn-ops`).
    pub max_txn_ops: usize,
    /// Bytes of one write request (etcd's `--max-request-bytes`).
    pub max_request_bytes: usize,
    /// Automatic compaction; `None` is never.
    pub auto_compaction: Option<AutoCompaction>,
    /// Interval of progress reports on quiet watches with `progress_notify`.
    pub watch_progress_interval: Duration,
    /// Seed of lease ids that the store chooses, for reproducible simulations. Elsewhere `None`: a
    /// client of an earlier store must not meet its old id.
    pub lease_id_seed: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            storage: Storage::Memory,
            max_txn_ops: DEFAULT_MAX_TXN_OPS,
            max_request_bytes: DEFAULT_MAX_REQUEST_BYTES,
            auto_compaction: None,
            watch_progress_interval: DEFAULT_WATCH_PROGRESS_INTERVAL,
            lease_id_seed: None,
        }
    }
}

/// Revisions that [`Config::bounded`] keeps. A batch allocation takes some five revisions of 0.5 KB until
/// it has ended, so this is about 50 MB.
pub const BOUNDED_REVISIONS: i64 = 100_000;

impl Config {
    /// The same store with a bounded history: the newest [`BOUNDED_REVISIONS`], checked every five minutes.
    /// A watch that is behind them ends with the error of etcd, and its client lists again.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self {
            auto_compaction: Some(AutoCompaction::Revisions(BOUNDED_REVISIONS)),
            ..self
        }
    }

    /// A store that forgets everything when it stops.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// A store in the file at `path` (made if absent), each write on disk before it is answered.
    #[must_use]
    pub fn on_disk(path: impl Into<PathBuf>) -> Self {
        Self {
            storage: Storage::Disk {
                path: path.into(),
                durability: Durability::Immediate,
            },
            ..Self::default()
        }
    }
}

/// Storage of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Nowhere but in memory.
    Memory,
    /// In memory, and in one file from which it is read back at the next start.
    Disk {
        /// The file; its directory must exist.
        path: PathBuf,
        durability: Durability,
    },
}

/// The failures that an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Synced to disk before it is answered: survives a crash of the process and of the machine.
    Immediate,
    /// Synced once a second and at shutdown: a crash of either loses the last second, whole txns
    /// at a time. For tests and throw-away data.
    None,
}

/// Policy of automatic compaction (etcd's `--auto-compaction-mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoCompaction {
    /// Every five minutes, all but this many of the newest revisions.
    Revisions(i64),
    /// Revisions older than this, checked once per period but at least hourly.
    Age(Duration),
}
