//! Holds every revision against what must be true, at the moment at which it becomes true.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embedded_etcd::record::Record;
use invariants::{Fact, History, Violation};
use model::JobKey;
use state::{Change, Entity, Key, Snapshot};
use store::Keyspace;

use crate::clock;

/// Where a job says which request it is of: see [`crate::users`].
pub const REQUEST: &str = "request";

/// Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Watcher {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    history: History,
    keyspace: Keyspace,
    writers: BTreeMap<i64, IpAddr>,
    /// Which elected service a machine runs.
    roles: BTreeMap<IpAddr, &'static str>,
    /// What each revision of a job was asked by, empty where it was deleted.
    jobs: BTreeMap<(JobKey, u64), String>,
    fingerprint: u64,
    found: Vec<Violation>,
    last: i64,
    is_verbose: bool,
}

impl Watcher {
    pub fn new(is_verbose: bool) -> Self {
        let inner = Inner {
            history: History::default(),
            keyspace: Keyspace::new("/kafila/v1/"),
            writers: BTreeMap::new(),
            roles: BTreeMap::new(),
            jobs: BTreeMap::new(),
            fingerprint: 0xcbf2_9ce4_8422_2325,
            found: Vec::new(),
            last: 0,
            is_verbose,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Says that the machine at `address` runs an elected service.
    pub fn add_role(&self, address: IpAddr, service: &'static str) {
        self.lock().roles.insert(address, service);
    }

    /// Notes a violation that somebody else has seen.
    pub fn report(&self, fact: Fact, found: String) {
        let mut inner = self.lock();
        let revision = inner.history.snapshot().index();
        inner.found.push(Violation {
            revision,
            fact,
            found,
        });
    }

    /// What the store holds.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().history.snapshot()
    }

    /// Everything found so far, those of single revisions first.
    pub fn violations(&self) -> Vec<Violation> {
        let inner = self.lock();
        let of_history = inner.history.violations().iter();
        of_history.chain(&inner.found).cloned().collect()
    }

    pub fn has_found(&self) -> bool {
        let inner = self.lock();
        !(inner.found.is_empty() && inner.history.violations().is_empty())
    }

    /// Which request wrote a job at a revision; empty: it was deleted then; `None`: it was not
    /// written.
    pub fn written(&self, job: &JobKey, revision: u64) -> Option<String> {
        self.lock().jobs.get(&(job.clone(), revision)).cloned()
    }

    /// The writes of a job after a revision, with the requests that wrote them.
    pub fn writes_after(&self, job: &JobKey, revision: u64) -> Vec<(u64, String)> {
        let inner = self.lock();
        let (from, to) = ((job.clone(), revision + 1), (job.clone(), u64::MAX));
        let range = inner.jobs.range(from..=to);
        range.map(|((_, at), by)| (*at, by.clone())).collect()
    }

    /// A number that is another if anything that was ever written is another, or at another time.
    pub fn fingerprint(&self) -> u64 {
        self.lock().fingerprint
    }

    pub fn revisions(&self) -> u64 {
        self.lock().history.revisions()
    }

    pub(crate) fn reopened(&self) {
        // What was told of revisions that never reached the disk is void.
        self.lock().writers.clear();
    }

    pub(crate) fn note_writer(&self, peer: Option<SocketAddr>, revision: i64) {
        if let Some(peer) = peer {
            self.lock().writers.insert(revision, peer.ip());
        }
    }

    pub(crate) fn see(&self, revision: i64, records: &[Arc<Record>]) {
        self.lock().see(revision, records);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn see(&mut self, revision: i64, records: &[Arc<Record>]) {
        if revision <= self.last {
            let text = format!("revision {revision} was written after {}", self.last);
            self.find(Fact::HistoryIsOne, text);
            return;
        }
        self.last = revision;
        let writer = self.writers.remove(&revision);
        self.mix(&revision.to_le_bytes());
        self.mix(&clock::steady().to_le_bytes());
        let mut changes = Vec::with_capacity(records.len());
        for record in records {
            self.mix(&record.key);
            self.mix(&record.value);
            let key = match self.keyspace.decode(&record.key) {
                Ok(key) => key,
                Err(error) => {
                    self.find(Fact::KeysAreKnown, error.to_string());
                    continue;
                }
            };
            match change(key, record) {
                Ok(change) => changes.push(change),
                Err(error) => self.find(Fact::KeysAreKnown, error),
            }
        }
        if self.is_verbose {
            self.tell(revision, writer, records);
        }
        let number = u64::try_from(revision).unwrap_or_default();
        for change in &changes {
            match change {
                Change::Put {
                    key: Key::Job(job),
                    entity: Entity::Job(value),
                    ..
                } => {
                    let request = value.meta.get(REQUEST).cloned().unwrap_or_default();
                    self.jobs.insert((job.clone(), number), request);
                }
                Change::Delete { key: Key::Job(job) } => {
                    self.jobs.insert((job.clone(), number), String::new());
                }
                _ => {}
            }
        }
        if let Some(writer) = writer {
            self.check_writer(writer, &changes);
        }
        self.history.apply(number, changes);
    }

    /// A service that has a leader writes through it alone: as of the revision before.
    fn check_writer(&mut self, writer: IpAddr, changes: &[Change]) {
        let Some(role) = self.roles.get(&writer).copied() else {
            return;
        };
        let is_election = |change: &Change| {
            let (Change::Put { key, .. } | Change::Delete { key }) = change;
            matches!(key, Key::Election(_))
        };
        if changes.iter().all(is_election) {
            return;
        }
        let snapshot = self.history.snapshot();
        let leader = snapshot.leader(role).map(|leader| &leader.value.address);
        let own = format!("http://{writer}:");
        if leader.is_none_or(|leader| !leader.starts_with(&own)) {
            let text = format!("{role} at {writer} writes while {leader:?} leads");
            self.find(Fact::OneWriterATerm, text);
        }
    }

    fn find(&mut self, fact: Fact, found: String) {
        let revision = u64::try_from(self.last).unwrap_or_default();
        self.found.push(Violation {
            revision,
            fact,
            found,
        });
    }

    fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.fingerprint ^= u64::from(*byte);
            self.fingerprint = self.fingerprint.wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn tell(&self, revision: i64, writer: Option<IpAddr>, records: &[Arc<Record>]) {
        let millis = clock::steady() / 1_000_000 - 1_000;
        let writer = writer.map_or_else(|| "-".to_owned(), |writer| writer.to_string());
        for record in records {
            let key = String::from_utf8_lossy(&record.key);
            let value = String::from_utf8_lossy(&record.value);
            println!("{millis} r{revision} {writer} {key} {value}");
        }
    }
}

fn change(key: Key, record: &Record) -> Result<Change, String> {
    if record.is_tombstone() {
        return Ok(Change::Delete { key });
    }
    let entity =
        store::codec::decode(&key, &record.value).map_err(|error| format!("{key:?}: {error}"))?;
    Ok(Change::Put {
        key,
        entity,
        create_index: u64::try_from(record.create_revision).unwrap_or_default(),
        modify_index: u64::try_from(record.revision.main).unwrap_or_default(),
    })
}
