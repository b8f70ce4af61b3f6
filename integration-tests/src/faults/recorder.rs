//! Recorder of etcd's history: every revision with the time of its first observation, checked against
//! the invariants at once.
//!
//! Each member has its own watch, so that a lost member delays nothing: the first one to deliver a
//! revision counts. A watch starts after the last recorded revision and delivers all later ones in
//! order, so none is missed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use invariants::{History, Violation};
use state::{Change, Entity, Key, Snapshot};
use store::{ChangeStream, Client, ClientOptions, RevisionChanges, StreamItem};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::workload;

/// Silence after which a member is asked for its progress.
const QUIET: Duration = Duration::from_secs(1);
/// Unanswered requests after which its watch is restarted.
const MOST_QUIET: u32 = 4;
const AGAIN: Duration = Duration::from_millis(200);

/// Records until dropped.
#[derive(Debug)]
pub struct Recorder {
    recorded: Arc<Mutex<Recorded>>,
    _watches: JoinSet<()>,
}

/// The recorded history. Times are microseconds since the run began.
#[derive(Debug, Default)]
pub struct Recorded {
    history: History,
    last: u64,
    /// Times of the revisions that placed allocations.
    pub placements: Vec<u64>,
    pub placed: usize,
    /// (Job, revision) → (tag, stopped).
    pub jobs: BTreeMap<(String, u64), (u64, bool)>,
    /// Time and service of each election.
    pub elections: Vec<(u64, String)>,
}

impl Recorder {
    /// Watches `members` from the first revision on. Times count from `began`.
    ///
    /// # Errors
    /// An address is not a URL.
    pub async fn start(members: &[String], began: Instant) -> Result<Self> {
        let recorded = Arc::new(Mutex::new(Recorded::default()));
        let mut watches = JoinSet::new();
        for member in members {
            let members = std::slice::from_ref(member);
            let client = Client::connect(members, ClientOptions::default()).await?;
            watches.spawn(watch(client, Arc::clone(&recorded), began));
        }
        Ok(Self {
            recorded,
            _watches: watches,
        })
    }

    pub fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn snapshot(&self) -> Snapshot {
        self.recorded().history.snapshot()
    }
}

impl Recorded {
    /// Returns the last recorded revision.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the number of revisions with changes of Kafila's keys.
    pub fn revisions(&self) -> u64 {
        self.history.revisions()
    }

    pub fn violations(&self) -> Vec<Violation> {
        self.history.violations().to_vec()
    }

    fn take(&mut self, written: RevisionChanges, now: u64) {
        if written.revision <= self.last {
            return;
        }
        self.last = written.revision;
        let before = self.history.snapshot();
        let mut placed = 0;
        for change in &written.changes {
            let Change::Put { key, entity, .. } = change else {
                continue;
            };
            match (key, entity) {
                (Key::Alloc(id), _) if before.alloc(*id).is_none() => placed += 1,
                (Key::Job(key), Entity::Job(job)) => {
                    if let Some(state) = workload::stored(job) {
                        self.jobs
                            .insert((key.job_id.to_string(), written.revision), state);
                    }
                }
                (Key::Election(service), _) => self.elections.push((now, service.clone())),
                _ => {}
            }
        }
        if placed > 0 {
            self.placements.push(now);
            self.placed += placed;
        }
        self.history.apply(written.revision, written.changes);
    }
}

async fn watch(client: Client, recorded: Arc<Mutex<Recorded>>, began: Instant) {
    let lock = || recorded.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let from = lock().last + 1;
        if let Ok(mut tail) = ChangeStream::from(&client, from).await {
            let mut quiet = 0;
            while quiet < MOST_QUIET {
                match timeout(QUIET, tail.next()).await {
                    Ok(Ok(StreamItem::Changes(written))) => {
                        quiet = 0;
                        let now = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                        lock().take(written, now);
                    }
                    Ok(Ok(StreamItem::Progress(_))) => quiet = 0,
                    Ok(Err(_)) => break,
                    Err(_) => {
                        quiet += 1;
                        if tail.request_progress(QUIET).await.is_err() {
                            break;
                        }
                    }
                }
            }
        }
        sleep(AGAIN).await;
    }
}
