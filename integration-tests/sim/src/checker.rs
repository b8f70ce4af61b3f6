//! Checker of every revision against the invariants, at the moment of its commit.

/// Tells whether a change of status is one that only a silent node may see.
fn is_loss(before: NodeStatus, after: NodeStatus) -> bool {
    let is_gone = |status| matches!(status, NodeStatus::Down | NodeStatus::Disconnected);
    is_gone(after) && before != after
}

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embedded_etcd::record::Record;
use invariants::{Fact, History, Violation};
use model::{DeploymentStatus, Job, JobKey, NodeStatus};
use state::{Change, Entity, Key, Snapshot};
use store::Keyspace;

use crate::clock;
use crate::failover::Failovers;

/// The meta key with the name of the request that wrote a job: see [`crate::workload`].
pub const REQUEST: &str = "request";

/// A write of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The request in the job's meta; empty for a deletion.
    pub request: String,
    pub is_stopped: bool,
    pub is_deleted: bool,
    pub by: Writer,
}

/// The kind of writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writer {
    /// A gateway, for a user.
    #[default]
    User,
    /// A failed rollout that reverted the job.
    Rollout,
    /// Garbage collection, or a periodic launch.
    Controller,
}

/// A write that marked a node down or disconnected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeMark {
    /// The node's name.
    pub(crate) node: String,
    pub(crate) status: NodeStatus,
    pub(crate) revision: u64,
    /// The time of the write, in milliseconds.
    pub(crate) at: u64,
}

/// Cheap to clone; clones share the history.
#[derive(Clone)]
pub struct Checker {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    history: History,
    keyspace: Keyspace,
    writers: BTreeMap<i64, IpAddr>,
    /// Address → elected service on the machine.
    roles: BTreeMap<IpAddr, &'static str>,
    /// (Job, revision) → write.
    jobs: BTreeMap<(JobKey, u64), Written>,
    /// Dispatch token → child.
    dispatched: BTreeMap<String, JobKey>,
    failovers: Failovers,
    node_marks: Vec<NodeMark>,
    fingerprint: u64,
    found: Vec<Violation>,
    last: i64,
    is_verbose: bool,
}

impl Checker {
    pub fn new(is_verbose: bool) -> Self {
        let inner = Inner {
            history: History::default(),
            keyspace: Keyspace::new("/kafila/v1/"),
            writers: BTreeMap::new(),
            roles: BTreeMap::new(),
            jobs: BTreeMap::new(),
            dispatched: BTreeMap::new(),
            failovers: Failovers::default(),
            node_marks: Vec::new(),
            fingerprint: 0xcbf2_9ce4_8422_2325,
            found: Vec::new(),
            last: 0,
            is_verbose,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Registers the elected service on the machine at `address`.
    pub fn add_role(&self, address: IpAddr, service: &'static str) {
        self.lock().roles.insert(address, service);
    }

    /// Records a violation found elsewhere.
    pub fn report(&self, fact: Fact, found: String) {
        let mut inner = self.lock();
        let revision = inner.history.snapshot().index();
        inner.found.push(Violation {
            revision,
            fact,
            found,
        });
    }

    /// Records that a live node was marked down at `revision`.
    pub(crate) fn report_at(&self, revision: u64, found: String) {
        self.lock().found.push(Violation {
            revision,
            fact: Fact::LiveNodesStayUp,
            found,
        });
    }

    /// Takes the marks of nodes as down or disconnected since the last call.
    pub(crate) fn take_node_marks(&self) -> Vec<NodeMark> {
        std::mem::take(&mut self.lock().node_marks)
    }

    /// Returns the machine of the leader of `service`.
    pub(crate) fn leader(&self, service: &str) -> Option<IpAddr> {
        let inner = self.lock();
        let snapshot = inner.history.snapshot();
        let mut machines = inner.roles.keys().copied();
        machines.find(|machine| leads(&snapshot, service, *machine))
    }

    /// Returns the term of the leader of `service`.
    pub(crate) fn term(&self, service: &str) -> Option<u64> {
        let snapshot = self.snapshot();
        snapshot.leader(service).map(|leader| leader.create_index)
    }

    /// Returns the content of the store.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().history.snapshot()
    }

    /// Returns all violations, those of single revisions first.
    pub fn violations(&self) -> Vec<Violation> {
        let inner = self.lock();
        let of_history = inner.history.violations().iter();
        of_history.chain(&inner.found).cloned().collect()
    }

    pub fn has_found(&self) -> bool {
        let inner = self.lock();
        !(inner.found.is_empty() && inner.history.violations().is_empty())
    }

    /// Returns the write of a job at a revision; `None`: it was not written.
    pub fn written(&self, job: &JobKey, revision: u64) -> Option<Written> {
        self.lock().jobs.get(&(job.clone(), revision)).cloned()
    }

    /// Returns the last write of a job at a revision or before it.
    pub fn written_until(&self, job: &JobKey, revision: u64) -> Option<Written> {
        let inner = self.lock();
        let range = inner.jobs.range((job.clone(), 0)..=(job.clone(), revision));
        range.last().map(|(_, written)| written.clone())
    }

    /// Returns the writes of a job after a revision.
    pub fn writes_after(&self, job: &JobKey, revision: u64) -> Vec<(u64, Written)> {
        let inner = self.lock();
        let (from, to) = ((job.clone(), revision + 1), (job.clone(), u64::MAX));
        let range = inner.jobs.range(from..=to);
        range
            .map(|((_, at), written)| (*at, written.clone()))
            .collect()
    }

    /// Returns whether a request ever wrote a job.
    pub fn has_written(&self, job: &JobKey, request: &str) -> bool {
        let writes = self.writes_after(job, 0);
        writes.iter().any(|(_, written)| written.request == request)
    }

    /// Records the crash of the machine at `address`.
    pub fn note_crash(&self, address: IpAddr) {
        let mut inner = self.lock();
        let Some(role) = inner.roles.get(&address).copied() else {
            return;
        };
        let snapshot = inner.history.snapshot();
        if leads(&snapshot, role, address) {
            let term = snapshot
                .leader(role)
                .map_or(0, |leader| leader.create_index);
            inner.failovers.lost(role, term, now_ms());
        }
    }

    /// Returns the failover times.
    pub fn failovers(&self) -> Failovers {
        self.lock().failovers.clone()
    }

    /// Returns a hash of all writes and their times.
    pub fn fingerprint(&self) -> u64 {
        self.lock().fingerprint
    }

    pub fn revisions(&self) -> u64 {
        self.lock().history.revisions()
    }

    pub(crate) fn reopened(&self) {
        // Writers of revisions that never reached the disk.
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
            self.print(revision, writer, records);
        }
        let number = u64::try_from(revision).unwrap_or_default();
        let role = writer.and_then(|writer| self.roles.get(&writer).copied());
        for change in &changes {
            self.check_change(number, role, change, &changes);
        }
        if let (Some(writer), Some(role)) = (writer, role) {
            self.check_writer(writer, role, &changes);
        }
        self.history.apply(number, changes);
        if let (Some(writer), Some(role)) = (writer, role) {
            let snapshot = self.history.snapshot();
            let term = snapshot
                .leader(role)
                .map_or(0, |leader| leader.create_index);
            if leads(&snapshot, role, writer) {
                // A term starts with the revision that wins the election.
                self.failovers.wrote(role, term, term == number, now_ms());
            }
        }
    }

    fn check_change(
        &mut self,
        revision: u64,
        role: Option<&'static str>,
        change: &Change,
        changes: &[Change],
    ) {
        let by = match role {
            Some(cluster_controller::SERVICE) => Writer::Controller,
            _ => Writer::User,
        };
        match change {
            Change::Put {
                key: Key::Job(job),
                entity: Entity::Job(value),
                ..
            } => {
                // Failing a rollout on request reverts the job as well.
                let is_reverted = is_reverted(changes, value);
                if role == Some(deployment_watcher::SERVICE) && !is_reverted {
                    let text = format!("{job} was changed, and no rollout of it failed");
                    self.find(Fact::AcknowledgedIsKept, text);
                }
                let by = if is_reverted { Writer::Rollout } else { by };
                self.check_dispatch(job, value);
                let written = Written {
                    request: value.meta.get(REQUEST).cloned().unwrap_or_default(),
                    is_stopped: value.stop,
                    is_deleted: false,
                    by,
                };
                self.jobs.insert((job.clone(), revision), written);
            }
            Change::Delete { key: Key::Job(job) } => {
                if by == Writer::Controller && has_work(&self.history.snapshot(), job) {
                    let text =
                        format!("{job} was collected while it has live allocations or evaluations");
                    self.find(Fact::AcknowledgedIsKept, text);
                }
                let written = Written {
                    is_deleted: true,
                    by,
                    ..Written::default()
                };
                self.jobs.insert((job.clone(), revision), written);
            }
            Change::Put {
                key: Key::Node(id),
                entity: Entity::Node(node),
                ..
            } => {
                let snapshot = self.history.snapshot();
                let before = snapshot.node(*id).map(|node| node.value.status);
                if before.is_some_and(|before| is_loss(before, node.status)) {
                    self.node_marks.push(NodeMark {
                        node: node.name.clone(),
                        status: node.status,
                        revision,
                        at: now_ms(),
                    });
                }
            }
            Change::Put {
                entity: Entity::ScalingEvents(scaled),
                ..
            } => {
                let mut names = BTreeSet::new();
                let named = scaled.events.iter().map(|event| event.message.as_str());
                let mut named = named.filter(|name| !name.is_empty());
                if let Some(twice) = named.find(|name| !names.insert(*name)) {
                    self.find(Fact::DoneOnce, format!("{twice} has scaled twice"));
                }
            }
            _ => {}
        }
    }

    /// One dispatch token makes one child, while that child is not collected.
    fn check_dispatch(&mut self, job: &JobKey, value: &Job) {
        let token = &value.dispatch_token;
        if token.is_empty() {
            return;
        }
        let snapshot = self.history.snapshot();
        let first = self.dispatched.insert(token.clone(), job.clone());
        if let Some(first) = first.filter(|first| first != job && snapshot.job(first).is_some()) {
            let text = format!("dispatch {token} has made {first} and {job}");
            self.find(Fact::DoneOnce, text);
        }
    }

    /// Only the leader of an elected service writes, as of the revision before. Every replica campaigns
    /// and registers its process.
    fn check_writer(&mut self, writer: IpAddr, role: &'static str, changes: &[Change]) {
        let is_of_replica = |change: &Change| {
            let (Change::Put { key, .. } | Change::Delete { key }) = change;
            matches!(key, Key::Election(_) | Key::Process(_))
        };
        if changes.iter().all(is_of_replica) {
            return;
        }
        let snapshot = self.history.snapshot();
        if !leads(&snapshot, role, writer) {
            let leader = snapshot.leader(role).map(|leader| &leader.value.address);
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

    fn print(&self, revision: i64, writer: Option<IpAddr>, records: &[Arc<Record>]) {
        let millis = now_ms();
        let writer = writer.map_or_else(|| "-".to_owned(), |writer| writer.to_string());
        for record in records {
            let key = String::from_utf8_lossy(&record.key);
            let value = String::from_utf8_lossy(&record.value);
            println!("{millis} r{revision} {writer} {key} {value}");
        }
    }
}

/// Returns the simulated time in milliseconds.
fn now_ms() -> u64 {
    clock::steady() / 1_000_000 - 1_000
}

fn leads(snapshot: &Snapshot, role: &str, machine: IpAddr) -> bool {
    let own = format!("http://{machine}:");
    let leader = snapshot.leader(role);
    leader.is_some_and(|leader| leader.value.address.starts_with(&own))
}

/// Returns whether the same revision fails a rollout of the job with auto-revert.
fn is_reverted(changes: &[Change], job: &Job) -> bool {
    changes.iter().any(|change| match change {
        Change::Put {
            entity: Entity::Deployment(rollout),
            ..
        } => {
            rollout.job == job.key()
                && rollout.status == DeploymentStatus::Failed
                && rollout.job_version + 1 == job.version
                && rollout.groups.values().any(|group| group.auto_revert)
        }
        _ => false,
    })
}

fn has_work(snapshot: &Snapshot, key: &JobKey) -> bool {
    let mut allocs = snapshot.allocs_by_job(key);
    let mut evals = snapshot.evals_by_job(key);
    allocs.any(|view| !view.is_terminal()) || evals.any(|eval| !eval.value.status.is_terminal())
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
