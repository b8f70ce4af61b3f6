//! Decisions on snapshots and their commits, decided again after a conflict.

use std::sync::Arc;
use std::time::Duration;

use model::{EvalId, Timestamp};
use service_kit::{CancellationToken, Clock, IdSource};
use state::{Snapshot, Write};
use store::{
    Client, Commit, Decision, Replica, SizeClass, Transactor, Txn, WaitError, Writer,
    decide_and_commit,
};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Code;
use tracing::debug;

use crate::error::Error;
use crate::group_commit::GroupCommit;
use crate::metrics::Metrics;
use crate::revisions::Revisions;
use crate::too_large;

/// The largest number of decisions on one request. Each retry means that another write to the same
/// objects came first, which is rare twice and practically excluded eight times.
const MAX_ATTEMPTS: usize = 8;

/// The replica and the writer of one gateway, shared by all of its handlers and loops.
#[derive(Debug)]
pub struct Core {
    /// For reads of past revisions, which the replica does not have.
    pub client: Client,
    pub replica: Replica,
    pub writer: Writer,
    pub clock: Clock,
    pub ids: IdSource,
    pub metrics: Metrics,
    revisions: Revisions,
    group_commit: GroupCommit,
    request_timeout: Duration,
}

/// The decision on a request, as of one snapshot.
pub enum Step<T> {
    /// Final, also if the snapshot is outdated.
    Known(T),
    /// Final in a fresh snapshot; in an older one the request is decided on again.
    IfFresh(T),
    /// To be written in one transaction; `answer` takes its revision.
    Commit {
        writes: Vec<Write>,
        answer: Box<dyn FnOnce(u64) -> T + Send>,
    },
}

/// A failure to read fresh state or to commit.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// Nothing was written.
    #[error("cannot reach the store")]
    Store(#[source] store::Error),
    /// Nothing was written, and a retry is refused as well.
    #[error(transparent)]
    Refused(store::Error),
    #[error(
        "the store did not answer: the request may have been committed; send it again to find out"
    )]
    Unknown(#[source] store::Error),
    #[error("cannot get fresh state")]
    Wait(#[source] WaitError),
    /// Stale reads still work.
    #[error("cannot answer with fresh state: try again")]
    NotFresh(#[source] Arc<store::Error>),
    #[error("the store did not return its revision in time: try again")]
    NoRevision,
    #[error("other writes keep changing {what}: try again")]
    Contended { what: String },
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Contended { .. } => Self::new(Code::Aborted, failure),
            Failure::Refused(_) => Self::new(Code::FailedPrecondition, failure),
            failure => Self::new(Code::Unavailable, failure),
        }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::NoSpace { .. } => Self::overloaded(error),
            store::Error::Refused { .. } | store::Error::Unbuildable(_) => {
                Failure::Refused(error).into()
            }
            store::Error::Unknown { .. } => Failure::Unknown(error).into(),
            error => Failure::Store(error).into(),
        }
    }
}

/// Converts a failed read. Its code is that of a failed commit, but an unknown outcome has no effect.
pub fn read_failure(error: store::Error) -> Error {
    match error {
        error @ store::Error::Unknown { .. } => Error::new(Code::Unavailable, error),
        error => error.into(),
    }
}

impl From<WaitError> for Error {
    fn from(error: WaitError) -> Self {
        Failure::Wait(error).into()
    }
}

/// Returns the error of a request that lost to other writes too often.
pub fn contended(what: String) -> Error {
    Failure::Contended { what }.into()
}

impl Core {
    /// Starts the loops that ask for revisions and commit groups among `loops`; they end with `stop`.
    /// Without one of them requests fail, so its early end has to end the service.
    pub fn new(
        replica: Replica,
        clock: Clock,
        ids: IdSource,
        metrics: Metrics,
        request_timeout: Duration,
        stop: CancellationToken,
        loops: &mut JoinSet<()>,
    ) -> Self {
        let client = replica.client().clone();
        let writer = client.unfenced_writer();
        let revisions = Revisions::start(client.clone(), metrics.clone(), stop.clone(), loops);
        let group_commit = GroupCommit::start(writer.clone(), metrics.clone(), stop, loops);
        Self {
            writer,
            client,
            replica,
            clock,
            ids,
            metrics,
            revisions,
            group_commit,
            request_timeout,
        }
    }

    pub fn now(&self) -> Timestamp {
        Timestamp(self.clock.now())
    }

    pub fn next_eval_id(&self) -> EvalId {
        EvalId::from_random(self.ids.next_u128())
    }

    /// Returns how long a request may wait for the store.
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// Returns the deadline of a request that begins now.
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.request_timeout
    }

    /// Returns the replica's newest state if `stale`, and a fresh one otherwise.
    ///
    /// # Errors
    /// See [`Self::fresh`].
    pub async fn snapshot(&self, stale: bool) -> Result<Snapshot, Error> {
        if stale {
            self.listed().await
        } else {
            self.fresh().await
        }
    }

    /// Returns the newest state once the replica has listed the store for the first time.
    async fn listed(&self) -> Result<Snapshot, Error> {
        Ok(self.replica.ready(self.request_timeout).await?)
    }

    /// Looks something up. What seems missing is looked up again in a fresh snapshot, unless the store
    /// cannot be reached.
    ///
    /// # Errors
    /// No replica is complete, or the error of `look`.
    pub async fn look<T>(&self, look: impl Fn(&Snapshot) -> Result<T, Error>) -> Result<T, Error> {
        match look(&self.snapshot(true).await?) {
            Ok(found) => Ok(found),
            Err(error) => match self.fresh().await {
                Ok(fresh) => look(&fresh),
                Err(_) => Err(error),
            },
        }
    }

    /// Returns a state that includes every write acknowledged before the call.
    ///
    /// # Errors
    /// The store does not return its revision, or the replica does not reach it in time.
    pub async fn fresh(&self) -> Result<Snapshot, Error> {
        self.fresh_by(self.deadline()).await
    }

    async fn fresh_by(&self, deadline: Instant) -> Result<Snapshot, Error> {
        let asked = tokio::time::timeout_at(deadline, self.revisions.current());
        let revision = match asked.await {
            Ok(Some(Ok(revision))) => revision,
            Ok(Some(Err(error))) => return Err(Failure::NotFresh(error).into()),
            Ok(None) => return Err(Error::draining()),
            Err(_) => return Err(Failure::NoRevision.into()),
        };
        self.wait_for(revision, deadline).await
    }

    /// Returns a state that includes `revision`.
    ///
    /// # Errors
    /// The replica does not reach it in time.
    pub async fn wait_for(&self, revision: u64, deadline: Instant) -> Result<Snapshot, Error> {
        Ok(self.replica.wait_for(revision, left(deadline)).await?)
    }

    /// Decides on a request and commits the decision. After a conflict it decides again, and it
    /// refuses only in a fresh snapshot. The outcome of a commit without an answer is determined
    /// before anything else is done. All of it takes no longer than one `request_timeout`.
    ///
    /// # Errors
    /// Those of `decide`; the store cannot be reached; other writes keep coming first.
    pub async fn execute<T>(
        &self,
        what: impl Fn() -> String + Send,
        decide: impl Fn(&Snapshot) -> Result<Step<T>, Error> + Send,
    ) -> Result<T, Error> {
        self.execute_in(SizeClass::New, what, decide).await
    }

    /// Like [`Self::execute`]; requests that come in together share transactions.
    ///
    /// All requests that call this must be of one kind, because all writes of one revision count as
    /// one event (`event_stream`).
    ///
    /// # Errors
    /// See [`Self::execute`].
    pub async fn execute_together<T>(
        &self,
        what: impl Fn() -> String + Send,
        decide: impl Fn(&Snapshot) -> Result<Step<T>, Error> + Send,
    ) -> Result<T, Error> {
        let within = Within {
            core: self,
            deadline: Some(self.deadline()),
            is_grouped: true,
        };
        self.execute_within(within, SizeClass::New, what, decide)
            .await
    }

    /// Like [`Self::execute`], in transactions as large as `class` allows.
    ///
    /// # Errors
    /// See [`Self::execute`].
    pub async fn execute_in<T>(
        &self,
        class: SizeClass,
        what: impl Fn() -> String + Send,
        decide: impl Fn(&Snapshot) -> Result<Step<T>, Error> + Send,
    ) -> Result<T, Error> {
        let within = Within {
            core: self,
            deadline: Some(self.deadline()),
            is_grouped: false,
        };
        self.execute_within(within, class, what, decide).await
    }

    async fn execute_within<T>(
        &self,
        within: Within<'_>,
        class: SizeClass,
        what: impl Fn() -> String + Send,
        decide: impl Fn(&Snapshot) -> Result<Step<T>, Error> + Send,
    ) -> Result<T, Error> {
        let decided = decide_and_commit(&within, self.listed().await?, MAX_ATTEMPTS, |snapshot| {
            Ok(match decide(snapshot)? {
                Step::Known(done) => Decision::Known(done),
                Step::IfFresh(done) => Decision::IfFresh(done),
                Step::Commit { writes, answer } => Decision::Commit {
                    txns: vec![self.transaction(class, &writes)?],
                    needs_fresh: false,
                    answer,
                },
            })
        });
        decided.await?.ok_or_else(|| contended(what()))
    }

    /// Decides and commits as [`Self::execute`] does, in several transactions. Each read and each
    /// commit may take one `request_timeout`. `None`: other writes keep coming first.
    ///
    /// # Errors
    /// Those of `decide`; the store cannot be reached.
    pub async fn execute_many<T>(
        &self,
        decide: impl FnMut(&Snapshot) -> Result<Decision<T>, Error> + Send,
    ) -> Result<Option<T>, Error> {
        let within = Within {
            core: self,
            deadline: None,
            is_grouped: false,
        };
        decide_and_commit(&within, self.replica.snapshot(), MAX_ATTEMPTS, decide).await
    }

    /// Commits writes in one transaction.
    ///
    /// # Errors
    /// They do not fit together; see [`Self::commit_txn`].
    pub async fn commit(&self, writes: &[Write], deadline: Instant) -> Result<Commit, Error> {
        self.commit_in(SizeClass::New, writes, deadline).await
    }

    async fn commit_in(
        &self,
        class: SizeClass,
        writes: &[Write],
        deadline: Instant,
    ) -> Result<Commit, Error> {
        let txn = self.transaction(class, writes)?;
        self.commit_txn(&txn, deadline).await
    }

    /// Returns the transaction of `writes`, not yet committed.
    ///
    /// # Errors
    /// They do not fit together; the error names the request's field of the largest object.
    pub fn transaction(&self, class: SizeClass, writes: &[Write]) -> Result<Txn, Error> {
        let txn = self.writer.txn_with(class);
        txn.with(writes)
            .map_err(|failure| too_large::error(writes, failure))
    }

    /// Commits a transaction, and determines its outcome when the answer does not come.
    ///
    /// # Errors
    /// See [`Writer::commit_surely`].
    pub async fn commit_txn(&self, txn: &Txn, deadline: Instant) -> Result<Commit, Error> {
        let started = Instant::now();
        let commit = self.writer.commit_surely(txn, left(deadline)).await?;
        self.note_commit(started);
        Ok(commit)
    }

    /// As [`Self::commit_txn`], in a transaction with others that come in at the same time.
    async fn commit_grouped(&self, txn: Txn, deadline: Instant) -> Result<Commit, Error> {
        let started = Instant::now();
        let commit = self.group_commit.commit(txn, deadline).await?;
        self.note_commit(started);
        Ok(commit)
    }

    fn note_commit(&self, started: Instant) {
        self.metrics
            .commit_seconds
            .observe(started.elapsed().as_secs_f64());
        self.metrics.commits.inc();
    }
}

/// Reads and commits of one request.
struct Within<'a> {
    core: &'a Core,
    /// `None`: each takes up to one `request_timeout`.
    deadline: Option<Instant>,
    /// Its commits share transactions with those of other requests.
    is_grouped: bool,
}

impl Within<'_> {
    fn deadline(&self) -> Instant {
        self.deadline.unwrap_or_else(|| self.core.deadline())
    }
}

impl Transactor for Within<'_> {
    type Error = Error;

    async fn fresh(&self) -> Result<Snapshot, Error> {
        self.core.fresh_by(self.deadline()).await
    }

    async fn wait_for(&self, revision: u64) -> Result<Snapshot, Error> {
        self.core.wait_for(revision, self.deadline()).await
    }

    async fn commit(&self, txn: &Txn) -> Result<Commit, Error> {
        let deadline = self.deadline();
        let commit = if self.is_grouped {
            self.core.commit_grouped(txn.clone(), deadline).await?
        } else {
            self.core.commit_txn(txn, deadline).await?
        };
        if let Commit::Conflict(conflict) = &commit {
            self.core.metrics.conflicts.inc();
            debug!(?conflict, "conflict: deciding again");
        }
        Ok(commit)
    }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests {
    use store::ClientOptions;

    use super::*;

    #[tokio::test]
    async fn an_unreachable_store_is_described_for_users() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let client = Client::connect(std::slice::from_ref(&address), ClientOptions::default())
            .await
            .unwrap();
        let failure = client.current_revision().await.unwrap_err();
        let message = Error::from(Failure::NotFresh(Arc::new(failure))).message();
        assert!(message.contains(&address), "{message}");
        assert!(
            !message.contains("::") && !message.contains("stale"),
            "{message}"
        );
    }
}
