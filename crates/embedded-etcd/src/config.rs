//! What a store is told when it starts: where it keeps its data, and what it refuses.

use std::{path::PathBuf, time::Duration};

/// Operations that one txn may hold, twice what Kafila's own txns are cut at (1,000).
pub const DEFAULT_MAX_TXN_OPS: usize = 2_048;

/// Bytes that one write request may have, four times what Kafila's own txns are cut at (1 MiB).
pub const DEFAULT_MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// How often a quiet watch that asked for it is told the current revision; etcd's default.
pub const DEFAULT_WATCH_PROGRESS_INTERVAL: Duration = Duration::from_secs(600);

/// How the store starts. The defaults are those Kafila runs its etcd with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the data lives; in memory unless told otherwise.
    pub storage: Storage,
    /// Compares, and operations per branch, that one txn may hold (etcd's `--max-txn-ops`).
    pub max_txn_ops: usize,
    /// Bytes of one write request (etcd's `--max-request-bytes`).
    pub max_request_bytes: usize,
    /// When old revisions are dropped without anyone asking; `None` is never.
    pub auto_compaction: Option<AutoCompaction>,
    /// How often a watch with `progress_notify` hears of the revision when nothing happens.
    pub watch_progress_interval: Duration,
    /// Makes the ids of leases whose clients leave the choice to the store repeat from run to run,
    /// for simulations. Elsewhere `None`: a client of an earlier store must not meet its old id.
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

impl Config {
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

/// Where the data lives.
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

/// What an answered write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Synced to disk before it is answered: survives a crash of the process and of the machine.
    Immediate,
    /// Synced once a second and at shutdown: a crash of either loses the last second, whole txns
    /// at a time. For tests and throw-away data.
    None,
}

/// When old revisions are dropped without anyone asking (etcd's `--auto-compaction-mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoCompaction {
    /// Every five minutes, all but this many of the newest revisions.
    Revisions(i64),
    /// What is older than this, checked once per period but at least hourly.
    Age(Duration),
}
