//! Stores what nodes report, many reports in one transaction.
//!
//! A lone report is committed at once; those that come in while a commit is under way make up the
//! next one, so batches grow with the load by themselves and nobody waits for company.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{AllocClient, AllocId, NodeId};
use state::Snapshot;
use store::{Commit, TxnError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, debug, info_span};

use super::reports::{Outcome, Packed, Reports, add, decide, pack};
use crate::error::Error;
use crate::gateway::Shared;

/// How many nodes' reports may wait for the next batch; beyond it callers wait, and their deadlines
/// bound that.
const QUEUE: usize = 1_024;
/// How soon after a commit began the next one may: a hundred transactions a second from each
/// gateway leave the store to the plans. Well within the 50 ms that a report may wait for others.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// How many reports make up a batch at most: what one transaction holds. More wait for the next.
const MAX_BATCH: usize = 1_000;
/// How often a batch is decided on again because somebody changed one of its keys: a node's second
/// session on another gateway, a collected allocation.
const MAX_ATTEMPTS: usize = 8;

/// One node's reports, and who waits for them.
#[derive(Debug)]
pub struct Ask {
    node_id: NodeId,
    reports: Reports,
    trace_parent: String,
    reply: oneshot::Sender<Result<Stored, Unstored>>,
}

/// What became of one node's reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The revision by which all of it is stored, but for what is `newer`.
    pub revision: u64,
    /// Allocations of which there is a later report, with its number: what was told is left out.
    pub newer: Vec<(AllocId, u64)>,
}

/// Why a caller's reports were not stored, or not all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unstored {
    /// One of the caller's own reports does not go into any transaction; its others are stored.
    Refused { alloc_id: AllocId, reason: String },
    /// The store cannot be reached, or does not say what became of it.
    Store(String),
    /// Others keep changing the same allocations.
    Contended,
}

/// The way into the loop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ReportHandle {
    asks: mpsc::Sender<Ask>,
}

/// What the loop reads from.
#[derive(Debug)]
pub struct ReportQueue(mpsc::Receiver<Ask>);

/// Makes both ends.
pub fn channel() -> (ReportHandle, ReportQueue) {
    let (asks, receiver) = mpsc::channel(QUEUE);
    (ReportHandle { asks }, ReportQueue(receiver))
}

impl ReportHandle {
    /// Stores checked reports.
    ///
    /// # Errors
    /// The store cannot be reached; others keep changing the same; one of the reports cannot be
    /// stored (the others are); the gateway shuts down.
    pub async fn store(
        &self,
        node_id: NodeId,
        reports: Reports,
        trace_parent: String,
    ) -> Result<Stored, Error> {
        let (reply, answer) = oneshot::channel();
        let ask = Ask {
            node_id,
            reports,
            trace_parent,
            reply,
        };
        self.asks.send(ask).await.map_err(|_| Error::Draining)?;
        match answer.await {
            Ok(Ok(stored)) => Ok(stored),
            Ok(Err(Unstored::Contended)) => Err(Error::Contended {
                what: format!("the allocations of node {node_id}"),
            }),
            Ok(Err(Unstored::Store(reason))) => Err(Error::ReportsUnstored { reason }),
            Ok(Err(Unstored::Refused { alloc_id, reason })) => {
                Err(Error::ReportRefused { alloc_id, reason })
            }
            Err(_) => Err(Error::Draining),
        }
    }
}

/// Runs until stopped; what has been taken in is stored first.
pub async fn run(gateway: Shared, mut queue: ReportQueue, stop: CancellationToken) {
    loop {
        let first = tokio::select! {
            biased;
            ask = queue.0.recv() => ask,
            () = stop.cancelled() => return,
        };
        let Some(first) = first else { return };
        let began = Instant::now();
        let mut batch = vec![first];
        let mut size = batch[0].reports.len();
        while size < MAX_BATCH {
            let Ok(ask) = queue.0.try_recv() else { break };
            size += ask.reports.len();
            batch.push(ask);
        }
        gateway.metrics.reports.inc_by(size as u64);
        gateway
            .metrics
            .report_batch
            .observe(u32::try_from(size).map_or(f64::MAX, f64::from));
        let span = info_span!("store_reports", reports = size, nodes = batch.len());
        store(&gateway, batch).instrument(span).await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep_until(began + MIN_INTERVAL) => {}
        }
    }
}

async fn store(gateway: &Shared, batch: Vec<Ask>) {
    // Of several reports of one allocation the last one counts.
    let mut reports = Reports::new();
    for ask in &batch {
        for (alloc_id, client) in &ask.reports {
            add(&mut reports, *alloc_id, client.clone());
        }
    }
    // An evaluation continues the trace of one of the callers; a batch has no trace of its own.
    let trace_parent = batch
        .first()
        .map(|ask| ask.trace_parent.clone())
        .unwrap_or_default();
    let result = store_all(gateway, &reports, &trace_parent).await;
    for ask in batch {
        let answer = match &result {
            Ok(stored) => stored.answer(&ask.reports),
            Err(unstored) => Err(unstored.clone()),
        };
        debug!(parent: &Span::current(), node_id = %ask.node_id, ?answer, "reports answered");
        // A caller that has given up asks again.
        let _ = ask.reply.send(answer);
    }
}

/// What became of a batch.
struct Batch {
    /// By which all of it is stored but for what is refused.
    revision: u64,
    refused: BTreeMap<AllocId, TxnError>,
    /// The numbers of the reports that are stored now.
    numbers: BTreeMap<AllocId, u64>,
}

impl Batch {
    /// Returns what the caller with these reports is told.
    fn answer(&self, reports: &Reports) -> Result<Stored, Unstored> {
        let refused = self
            .refused
            .iter()
            .find(|(alloc_id, _)| reports.contains_key(alloc_id));
        match refused {
            Some((alloc_id, error)) => Err(Unstored::Refused {
                alloc_id: *alloc_id,
                reason: error.to_string(),
            }),
            None => Ok(Stored {
                revision: self.revision,
                newer: self.newer(reports),
            }),
        }
    }

    fn newer(&self, reports: &Reports) -> Vec<(AllocId, u64)> {
        let newer = reports.iter().filter_map(|(alloc_id, client)| {
            let number = *self.numbers.get(alloc_id)?;
            (client.report != 0 && number > client.report).then_some((*alloc_id, number))
        });
        newer.collect()
    }
}

/// Stores reports, all that can be.
async fn store_all(
    gateway: &Shared,
    reports: &Reports,
    trace_parent: &str,
) -> Result<Batch, Unstored> {
    let mut snapshot = gateway.replica.snapshot();
    let mut is_fresh = false;
    let mut stored = 0;
    for _ in 0..MAX_ATTEMPTS {
        let outcomes = decide(&snapshot, reports, gateway.now());
        if outcomes.len() < reports.len() && !is_fresh {
            // Some say nothing new. That they are stored is only sure if the snapshot is not old.
            snapshot = gateway
                .fresh()
                .await
                .map_err(|error| Unstored::Store(error.message()))?;
            is_fresh = true;
            continue;
        }
        let packed = plan(gateway, &outcomes, trace_parent);
        let mut conflict = None;
        for txn in &packed.txns {
            match gateway.commit_txn(txn, gateway.deadline()).await {
                Ok(Commit::Done { revision }) => stored = stored.max(revision),
                Ok(Commit::Conflict(found)) => {
                    conflict = Some(found.revision);
                    break;
                }
                Err(error) => return Err(Unstored::Store(error.message())),
            }
        }
        let Some(revision) = conflict else {
            // What said nothing new is stored by the snapshot's revision.
            return Ok(Batch {
                revision: stored.max(snapshot.index()),
                refused: packed.refused,
                numbers: numbers(&snapshot, reports),
            });
        };
        gateway.metrics.conflicts.inc();
        let wanted = revision.max(stored);
        let timeout = gateway.config.request_timeout;
        let fresh = gateway.replica.wait_for(wanted, timeout).await;
        snapshot = fresh.map_err(|error| Unstored::Store(error.to_string()))?;
        is_fresh = true;
    }
    Err(Unstored::Contended)
}

/// Returns the number of the last report of each allocation, the ones in `reports` included.
fn numbers(snapshot: &Snapshot, reports: &Reports) -> BTreeMap<AllocId, u64> {
    let number = |(alloc_id, client): (&AllocId, &AllocClient)| {
        let view = snapshot.alloc(*alloc_id);
        let stored = view.and_then(|view| view.client.as_ref());
        let stored = stored.map_or(0, |stored| stored.report);
        (*alloc_id, stored.max(client.report))
    };
    reports.iter().map(number).collect()
}

fn plan(gateway: &Shared, outcomes: &[Outcome], trace_parent: &str) -> Packed {
    let new_txn = || gateway.writer.txn();
    let next_id = || gateway.next_eval_id();
    pack(outcomes, gateway.now(), trace_parent, new_txn, next_id)
}
