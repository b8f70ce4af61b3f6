//! Watches etcd: every revision, with the time at which it was first seen, held against the
//! invariants as it comes.
//!
//! Each member is watched on its own, so that a member that is lost or cut off delays nothing: a
//! revision counts when the first of them tells it. Watches begin after the last revision that was
//! seen, and each tells all that follow in order, so none is missed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use invariants::{History, Violation};
use state::{Change, Entity, Key, Snapshot};
use store::{Client, ClientOptions, Tail, Told, Written};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::users;

/// After so long without a word a member is asked how far it is.
const QUIET: Duration = Duration::from_secs(1);
/// After so many times without an answer its watch is begun again.
const MOST_QUIET: u32 = 4;
const AGAIN: Duration = Duration::from_millis(200);

/// Watches until dropped.
#[derive(Debug)]
pub struct Recorder {
    recorded: Arc<Mutex<Recorded>>,
    _watches: JoinSet<()>,
}

/// What was seen so far. Times are microseconds since the run began.
#[derive(Debug, Default)]
pub struct Recorded {
    history: History,
    last: u64,
    /// When allocations were placed: once for each revision that did.
    pub placements: Vec<u64>,
    pub placed: usize,
    /// Job and revision → the tag that it had from then on, and whether it was stopped.
    pub jobs: BTreeMap<(String, u64), (u64, bool)>,
    /// When each election was won, and whose.
    pub elections: Vec<(u64, String)>,
}

impl Recorder {
    /// Begins to watch `members` from the first revision on. Times count from `began`.
    ///
    /// # Errors
    /// An address is none.
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
    /// Returns the last revision that was seen.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns how many revisions changed anything of ours.
    pub fn revisions(&self) -> u64 {
        self.history.revisions()
    }

    pub fn violations(&self) -> Vec<Violation> {
        self.history.violations().to_vec()
    }

    fn take(&mut self, written: Written, now: u64) {
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
                    if let Some(state) = users::stored(job) {
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
        if let Ok(mut tail) = Tail::from(&client, from).await {
            let mut quiet = 0;
            while quiet < MOST_QUIET {
                match timeout(QUIET, tail.next()).await {
                    Ok(Ok(Told::Written(written))) => {
                        quiet = 0;
                        let now = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                        lock().take(written, now);
                    }
                    Ok(Ok(Told::Quiet(_))) => quiet = 0,
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
