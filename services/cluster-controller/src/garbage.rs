//! The garbage collection loop, around [`controller::garbage::sweep`]: sweeps at an interval and on
//! request.

use std::collections::HashMap;
use std::time::Duration;

use controller::garbage::{Batch, Counts, Thresholds, check_before_deletion, sweep, tally};
use model::{JobKey, JobTally};
use service_host::TermQueue;
use state::{Snapshot, Write};
use store::SizeClass;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, info, info_span, warn};

use crate::term::{Term, WRITE_TIMEOUT, WriteError};

/// Requests in the queue; further ones are rejected, to be retried later.
pub(crate) const WAITING_REQUESTS: usize = 16;

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) collected: Counts,
    /// Batches that failed because an object had changed; the next sweep retries.
    pub(crate) conflicts: u64,
}

/// The reply channel of a requested sweep.
pub(crate) type Reply = oneshot::Sender<Result<Report, String>>;

/// Requests for sweeps.
pub(crate) type Requests = TermQueue<Reply>;

/// The interval of sweeps, and the retention times.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) interval: Duration,
    pub(crate) thresholds: Thresholds,
}

/// Sweeps until drained or deposed.
pub(crate) async fn collect(
    term: Term,
    schedule: Schedule,
    mut requests: mpsc::Receiver<Reply>,
    drain: CancellationToken,
) {
    let mut due = Instant::now() + schedule.interval;
    loop {
        tokio::select! {
            biased;
            () = drain.cancelled() => return,
            () = term.deposed.cancelled() => return,
            Some(reply) = requests.recv() => {
                let report = run_sweep(&term, &Thresholds::forced(), &drain).await;
                // The caller may have given up; the sweep stays done.
                let _ = reply.send(report);
            }
            () = tokio::time::sleep_until(due) => {
                // A failure is logged, and the next sweep starts over.
                let _ = run_sweep(&term, &schedule.thresholds, &drain).await;
                due = Instant::now() + schedule.interval;
            }
        }
    }
}

async fn run_sweep(
    term: &Term,
    thresholds: &Thresholds,
    drain: &CancellationToken,
) -> Result<Report, String> {
    let span = info_span!("garbage_collection", forced = thresholds.is_forced);
    let sweep = Sweep {
        term,
        tallies: HashMap::new(),
        report: Report::default(),
    };
    sweep.run(thresholds, drain).instrument(span).await
}

struct Sweep<'a> {
    term: &'a Term,
    /// Tallies that this sweep has written, with their modify indexes. The snapshot of the sweep does
    /// not show them.
    tallies: HashMap<JobKey, (JobTally, u64)>,
    report: Report,
}

impl Sweep<'_> {
    async fn run(
        mut self,
        thresholds: &Thresholds,
        drain: &CancellationToken,
    ) -> Result<Report, String> {
        let snapshot = self.term.replica.snapshot();
        let (examined, now, limits) = (snapshot.clone(), self.term.now(), thresholds.clone());
        // Millions of objects take seconds, and heartbeats must be processed meanwhile.
        let batches = blocking::spawn(move || sweep(&examined, now, &limits));
        let batches = batches.await.map_err(|error| error.to_string())?;
        for batch in batches {
            if drain.is_cancelled() {
                break;
            }
            if let Err(error) = self.delete(&snapshot, batch).await {
                self.term.metrics.write_failures.inc();
                warn!(%error, "garbage collection ended early: the next sweep continues");
                return Err(error.to_string());
            }
        }
        let Report {
            collected,
            conflicts,
        } = self.report;
        if collected.total() + conflicts > 0 {
            info!(
                evals = collected.evals,
                allocs = collected.allocs,
                jobs = collected.jobs,
                deployments = collected.deployments,
                nodes = collected.nodes,
                conflicts,
                "garbage collected"
            );
        }
        Ok(self.report)
    }

    /// Performs one batch, unless a compared object has changed.
    async fn delete(&mut self, snapshot: &Snapshot, batch: Batch) -> Result<(), WriteError> {
        let mut writes = batch.writes;
        if let Some(key) = &batch.deleted_job {
            let fresh = self.term.replica.linearizable(WRITE_TIMEOUT).await?;
            let Ok(compare) = check_before_deletion(&fresh, key) else {
                self.report.conflicts += 1;
                return Ok(());
            };
            writes.extend(compare);
        }
        let tally = batch.tally.map(|(key, more)| {
            let (write, sum) = self.add_tally(snapshot, &key, &more);
            writes.push(write);
            (key, sum)
        });
        match self.term.write(writes, SizeClass::New).await {
            Ok(revision) => {
                if let Some((key, sum)) = tally {
                    self.tallies.insert(key, (sum, revision));
                }
                self.report.collected.add(batch.counts);
                self.term.metrics.collected(batch.counts);
            }
            Err(WriteError::Conflict) => {
                debug!("an object of the batch has changed: it stays until the next sweep");
                self.report.conflicts += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn add_tally(&self, snapshot: &Snapshot, key: &JobKey, more: &JobTally) -> (Write, JobTally) {
        let written = self.tallies.get(key).map(|(tally, index)| (tally, *index));
        let stored = snapshot.job_tally(key);
        let stored = stored.map(|row| (&row.value, row.modify_index));
        tally::add(key, more, written.or(stored))
    }
}
