//! What every handler of a gateway shares: the replica, the writer, the loops' handles.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{EvalId, Timestamp};
use service_kit::{CancellationToken, Clock, IdSource};
use state::Snapshot;
use store::{Client, Commit, Replica, Room, WaitError, Writer};
use tokio::time::Instant;
use tracing::debug;

use crate::config::Config;
use crate::error::Error;
use crate::events::Streams;
use crate::metrics::Metrics;
use crate::nodes::liveness::Heard;
use crate::nodes::report_loop::ReportHandle;
use crate::nodes::sessions::Sessions;
use crate::reads::blocking::TableChanges;
use crate::reads::freshness::Revisions;
use crate::turns::Turns;
use crate::writes::{Write, into_txn};

/// How often one request is decided on before it is given up: each time somebody else was faster
/// with the same job or node, which is rare twice and absurd eight times.
const MAX_ATTEMPTS: usize = 8;

/// Shared by all handlers of one gateway.
#[derive(Debug)]
pub struct Gateway {
    pub config: Config,
    /// What nodes are told: where gateways are.
    pub gateways: Vec<String>,
    /// For what the replica does not have: the past.
    pub client: Client,
    pub replica: Replica,
    pub writer: Writer,
    pub revisions: Revisions,
    pub tables: TableChanges,
    pub sessions: Sessions,
    pub heard: Mutex<Heard>,
    pub reports: ReportHandle,
    pub clock: Clock,
    pub ids: IdSource,
    pub metrics: Metrics,
    pub drain: CancellationToken,
    pub dry_runs: Turns,
    pub streams: Streams,
}

/// What a request comes to, as of one snapshot.
pub enum Step<T> {
    /// So it is, whatever the snapshot does not show.
    Known(T),
    /// So it is unless the snapshot is too old: it is looked at again in a fresh one.
    IfFresh(T),
    /// To be written in one transaction; the answer is made of its revision.
    Commit {
        writes: Vec<Write>,
        answer: Box<dyn FnOnce(u64) -> T + Send>,
    },
}

impl Gateway {
    pub fn now(&self) -> Timestamp {
        Timestamp(self.clock.now())
    }

    pub fn next_eval_id(&self) -> EvalId {
        EvalId::from_random(self.ids.next_u128())
    }

    pub fn heard(&self) -> MutexGuard<'_, Heard> {
        // Each use is one step of a collection: a panic leaves nothing half done.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the replica's newest state, which may be old, or one that includes every write
    /// acknowledged before the call.
    ///
    /// # Errors
    /// Not stale, and the store does not tell its revision or the replica does not reach it.
    pub async fn snapshot(&self, stale: bool) -> Result<Snapshot, Error> {
        if stale {
            Ok(self.listed().await?)
        } else {
            self.fresh().await
        }
    }

    /// Returns the newest state once the replica has listed the store for the first time.
    async fn listed(&self) -> Result<Snapshot, WaitError> {
        self.replica.ready(self.config.request_timeout).await
    }

    /// Returns a state that includes every write acknowledged before the call.
    ///
    /// # Errors
    /// The store does not tell its revision, or the replica does not reach it in time.
    pub async fn fresh(&self) -> Result<Snapshot, Error> {
        self.fresh_by(self.deadline()).await
    }

    /// Returns by when what is asked for now has to be answered.
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.config.request_timeout
    }

    async fn fresh_by(&self, deadline: Instant) -> Result<Snapshot, Error> {
        let asked = tokio::time::timeout_at(deadline, self.revisions.current());
        let revision = match asked.await {
            Ok(Some(Ok(revision))) => revision,
            Ok(Some(Err(error))) => return Err(Error::NoFreshState(error)),
            Ok(None) => return Err(Error::Draining),
            Err(_) => return Err(Error::NoRevision),
        };
        Ok(self.wait_for(revision, deadline).await?)
    }

    async fn wait_for(&self, revision: u64, deadline: Instant) -> Result<Snapshot, WaitError> {
        self.replica.wait_for(revision, left(deadline)).await
    }

    /// Decides on a request and carries it out: again when somebody else was faster, and once more
    /// in a fresh snapshot before it is refused. Never blindly: each attempt is decided anew, and
    /// a commit whose answer does not come is looked for before anything else. All of it together
    /// takes no longer than one `request_timeout`.
    ///
    /// # Errors
    /// Those of `decide`; the store cannot be reached; others keep being faster.
    pub async fn carry_out<T>(
        &self,
        what: impl Fn() -> String + Send,
        decide: impl Fn(&Snapshot) -> Result<Step<T>, Error> + Send,
    ) -> Result<T, Error> {
        self.carry_out_with(Room::New, what, decide).await
    }

    /// Does the same in transactions that may be as large as `room` says.
    ///
    /// # Errors
    /// See [`Self::carry_out`].
    pub async fn carry_out_with<T>(
        &self,
        room: Room,
        what: impl Fn() -> String + Send,
        decide: impl Fn(&Snapshot) -> Result<Step<T>, Error> + Send,
    ) -> Result<T, Error> {
        let deadline = self.deadline();
        let mut snapshot = self.listed().await?;
        let mut is_fresh = false;
        for attempt in 1..=MAX_ATTEMPTS {
            match decide(&snapshot) {
                Ok(Step::Known(done)) => return Ok(done),
                Ok(Step::IfFresh(done)) if is_fresh => return Ok(done),
                Err(error) if is_fresh => return Err(error),
                Ok(Step::IfFresh(_)) | Err(_) => {
                    snapshot = self.fresh_by(deadline).await?;
                    is_fresh = true;
                }
                Ok(Step::Commit { writes, answer }) => {
                    match self.commit_with(room, &writes, deadline).await? {
                        Commit::Done { revision } => return Ok(answer(revision)),
                        Commit::Conflict(conflict) => {
                            self.metrics.conflicts.inc();
                            debug!(attempt, ?conflict, "somebody was faster: deciding again");
                            snapshot = self.wait_for(conflict.revision, deadline).await?;
                            is_fresh = true;
                        }
                    }
                }
            }
        }
        Err(Error::Contended { what: what() })
    }

    /// Commits writes in one transaction.
    ///
    /// # Errors
    /// They do not fit together; see [`Self::commit_txn`].
    pub async fn commit(&self, writes: &[Write], deadline: Instant) -> Result<Commit, Error> {
        self.commit_with(Room::New, writes, deadline).await
    }

    async fn commit_with(
        &self,
        room: Room,
        writes: &[Write],
        deadline: Instant,
    ) -> Result<Commit, Error> {
        let txn = into_txn(self.writer.txn_with(room), writes).map_err(Error::TooLarge)?;
        self.commit_txn(&txn, deadline).await
    }

    /// Commits a transaction, finding out what happened when the answer does not come.
    ///
    /// # Errors
    /// See [`Writer::commit_surely`].
    pub async fn commit_txn(&self, txn: &store::Txn, deadline: Instant) -> Result<Commit, Error> {
        let started = Instant::now();
        let commit = self.writer.commit_surely(txn, left(deadline)).await?;
        self.metrics
            .commit_seconds
            .observe(started.elapsed().as_secs_f64());
        self.metrics.commits.inc();
        Ok(commit)
    }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// A handle that handlers hold. Cheap to clone.
pub type Shared = Arc<Gateway>;
