//! The loop that stores reports, many in one transaction.
//!
//! A lone report is committed at once. Reports that come in while a commit is under way make up the
//! next one, so batches grow with the load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use admission::nodes::packing::{Packed, pack};
use admission::nodes::reports::{ReportDecision, Reports, add, decide, newer, numbers};
use gateway_core::{Core, Error};
use model::{AllocId, NodeId};
use store::{Decision, Txn, TxnError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tracing::{Instrument as _, Span, debug, info_span};

use crate::metrics::Metrics;
use crate::report_transactions::StoreTransactions;

/// The number of nodes' reports that may queue for the next batch. Further callers wait for room in
/// the queue, which their deadlines bound.
const QUEUE: usize = 1_024;
/// The minimum interval between two commits: fifty transactions a second from each gateway leave
/// most of the store to plans. Well within the 50 ms that a report may wait for others.
const MIN_INTERVAL: Duration = Duration::from_millis(20);
/// The size limit of a batch: the operations of one transaction.
const MAX_BATCH: usize = 1_000;

/// One node's reports, and the channel of the answer.
#[derive(Debug)]
pub struct Submission {
    node_id: NodeId,
    reports: Reports,
    trace_parent: String,
    reply: oneshot::Sender<Result<Stored, StoreFailure>>,
}

/// The answer to one node's reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The revision at which all reports are stored, except for `newer`.
    pub revision: u64,
    /// Allocations with a later report, and its number; the submitted report was dropped.
    pub newer: Vec<(AllocId, u64)>,
}

/// The reason why some or all reports of a caller were not stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreFailure {
    /// One of the caller's reports fits in no transaction; its others are stored.
    #[error("the report of allocation {alloc_id} cannot be stored: {reason}")]
    Refused { alloc_id: AllocId, reason: String },
    /// The store cannot be reached, refuses the commit, or the result of the commit is unknown.
    #[error("cannot store the reports; the node sends them again")]
    Store(#[source] Arc<Error>),
    /// Other writes keep changing the same allocations.
    #[error("other writes keep changing the node's allocations: try again")]
    Contended,
}

impl From<StoreFailure> for Error {
    fn from(failure: StoreFailure) -> Self {
        match &failure {
            StoreFailure::Refused { .. } => Self::new(Code::InvalidArgument, failure),
            // Maybe stored, maybe not: the node sends them again, and they are stored once.
            StoreFailure::Store(error) => error.clone().with_cause(failure),
            StoreFailure::Contended => Self::new(Code::Aborted, failure),
        }
    }
}

impl From<Error> for StoreFailure {
    fn from(error: Error) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// The sender of submissions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ReportHandle {
    submissions: mpsc::Sender<Submission>,
}

/// The receiver of submissions, for the loop.
#[derive(Debug)]
pub struct ReportQueue(mpsc::Receiver<Submission>);

/// Returns both ends of the queue.
pub fn channel() -> (ReportHandle, ReportQueue) {
    let (submissions, receiver) = mpsc::channel(QUEUE);
    (ReportHandle { submissions }, ReportQueue(receiver))
}

impl ReportHandle {
    /// Stores checked reports.
    ///
    /// # Errors
    /// The store cannot be reached; other writes keep coming first; one of the reports cannot be
    /// stored (the others are); the gateway shuts down.
    pub async fn store(
        &self,
        node_id: NodeId,
        reports: Reports,
        trace_parent: String,
    ) -> Result<Stored, Error> {
        let (reply, answer) = oneshot::channel();
        let submission = Submission {
            node_id,
            reports,
            trace_parent,
            reply,
        };
        let sent = self.submissions.send(submission).await;
        sent.map_err(|_| Error::draining())?;
        match answer.await {
            Ok(Ok(stored)) => Ok(stored),
            Ok(Err(failure)) => Err(failure.into()),
            Err(_) => Err(Error::draining()),
        }
    }
}

/// Runs until stopped; queued reports are stored first.
pub async fn run(
    core: Arc<Core>,
    metrics: Metrics,
    mut queue: ReportQueue,
    stop: CancellationToken,
) {
    loop {
        let first = tokio::select! {
            biased;
            submission = queue.0.recv() => submission,
            () = stop.cancelled() => return,
        };
        let Some(first) = first else { return };
        let began = Instant::now();
        let mut batch = vec![first];
        let mut size = batch[0].reports.len();
        while size < MAX_BATCH {
            let Ok(submission) = queue.0.try_recv() else {
                break;
            };
            size += submission.reports.len();
            batch.push(submission);
        }
        metrics.reports.inc_by(size as u64);
        metrics
            .report_batch
            .observe(u32::try_from(size).map_or(f64::MAX, f64::from));
        let span = info_span!("store_reports", reports = size, nodes = batch.len());
        store(&core, batch).instrument(span).await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep_until(began + MIN_INTERVAL) => {}
        }
    }
}

async fn store(core: &Core, batch: Vec<Submission>) {
    // The last report of an allocation wins.
    let mut reports = Reports::new();
    for submission in &batch {
        for (alloc_id, client) in &submission.reports {
            add(&mut reports, *alloc_id, client.clone());
        }
    }
    // Evaluations continue the trace of the first caller; a batch has none of its own.
    let trace_parent = batch
        .first()
        .map(|submission| submission.trace_parent.clone())
        .unwrap_or_default();
    let result = store_all(core, &reports, &trace_parent).await;
    for submission in batch {
        let answer = match &result {
            Ok(stored) => stored.answer(&submission.reports),
            Err(failure) => Err(failure.clone()),
        };
        debug!(parent: &Span::current(), node_id = %submission.node_id, ?answer, "reports answered");
        // A caller that has given up sends its reports again.
        let _ = submission.reply.send(answer);
    }
}

/// The result of a batch.
struct Batch {
    /// The revision at which all but the refused reports are stored.
    revision: u64,
    refused: BTreeMap<AllocId, TxnError>,
    /// The numbers of the stored reports.
    numbers: BTreeMap<AllocId, u64>,
}

impl Batch {
    /// Returns the answer for the caller with these reports.
    fn answer(&self, reports: &Reports) -> Result<Stored, StoreFailure> {
        let refused = self
            .refused
            .iter()
            .find(|(alloc_id, _)| reports.contains_key(alloc_id));
        match refused {
            Some((alloc_id, error)) => Err(StoreFailure::Refused {
                alloc_id: *alloc_id,
                reason: error.to_string(),
            }),
            None => Ok(Stored {
                revision: self.revision,
                newer: newer(&self.numbers, reports),
            }),
        }
    }
}

/// Stores all reports that fit in a transaction.
async fn store_all(
    core: &Core,
    reports: &Reports,
    trace_parent: &str,
) -> Result<Batch, StoreFailure> {
    let stored = core.execute_many(|snapshot| {
        let outcomes = decide(snapshot, reports, core.now());
        let packed = plan(core, &outcomes, trace_parent);
        let (index, refused) = (snapshot.index(), packed.refused);
        let numbers = numbers(snapshot, reports);
        Ok(Decision::Commit {
            txns: packed.txns,
            // Only a fresh snapshot confirms that a report has no news.
            needs_fresh: outcomes.len() < reports.len(),
            answer: Box::new(move |revision| Batch {
                // Reports without news are stored as of the snapshot's revision.
                revision: revision.max(index),
                refused,
                numbers,
            }),
        })
    });
    stored.await?.ok_or(StoreFailure::Contended)
}

fn plan(core: &Core, outcomes: &[ReportDecision], trace_parent: &str) -> Packed<Txn, TxnError> {
    let transactions = StoreTransactions(&core.writer);
    let next_id = || core.next_eval_id();
    pack(outcomes, core.now(), trace_parent, &transactions, next_id)
}
