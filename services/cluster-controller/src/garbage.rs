//! Deletes what nobody needs any more: every few minutes, and when somebody asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{JobKey, JobTally};
use state::{Key, Snapshot};
use store::{Commit, TxnError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, info, info_span, warn};
use upkeep::garbage::{Batch, Counts, Guard, Thresholds, sweep};

use crate::world::{PATIENCE, World};

/// Requests that may wait: whoever comes after them is told to try again.
const WAITING_REQUESTS: usize = 16;

/// What came of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) collected: Counts,
    /// Transactions that found something changed; the next sweep looks again.
    pub(crate) overtaken: u64,
}

/// Somebody waits for a sweep.
pub(crate) type Asked = oneshot::Sender<Result<Report, String>>;

/// Takes requests while this process leads. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    /// Open exactly while the loop runs.
    term: Arc<Mutex<Option<mpsc::Sender<Asked>>>>,
}

impl Requests {
    /// Opens the way to a new loop; it closes when the receiver is dropped.
    pub(crate) fn open(&self) -> mpsc::Receiver<Asked> {
        let (sender, receiver) = mpsc::channel(WAITING_REQUESTS);
        *self.lock() = Some(sender);
        receiver
    }

    /// Returns the way to the loop; `None` when this process does not lead.
    pub(crate) fn term(&self) -> Option<mpsc::Sender<Asked>> {
        self.lock().clone().filter(|sender| !sender.is_closed())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<mpsc::Sender<Asked>>> {
        // An Option has no half-done state.
        self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often, and how old is old.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) interval: Duration,
    pub(crate) thresholds: Thresholds,
}

/// Sweeps until drained or deposed.
pub(crate) async fn collect(
    world: World,
    plan: Plan,
    mut asked: mpsc::Receiver<Asked>,
    drain: CancellationToken,
) {
    let mut due = Instant::now() + plan.interval;
    loop {
        tokio::select! {
            biased;
            () = drain.cancelled() => return,
            () = world.deposed.cancelled() => return,
            Some(answer) = asked.recv() => {
                let report = swept(&world, &Thresholds::forced(), &drain).await;
                // Whoever asked may have gone; what was collected stays collected.
                let _ = answer.send(report);
            }
            () = tokio::time::sleep_until(due) => {
                // A failure is logged, and the next sweep starts over.
                let _ = swept(&world, &plan.thresholds, &drain).await;
                due = Instant::now() + plan.interval;
            }
        }
    }
}

async fn swept(
    world: &World,
    thresholds: &Thresholds,
    drain: &CancellationToken,
) -> Result<Report, String> {
    let span = info_span!("garbage_collection", forced = thresholds.is_forced);
    let sweep = Sweep {
        world,
        tallies: HashMap::new(),
        report: Report::default(),
    };
    sweep.run(thresholds, drain).instrument(span).await
}

struct Sweep<'a> {
    world: &'a World,
    /// Tallies written by this sweep, with their revisions: the replica may not show them yet.
    tallies: HashMap<JobKey, (JobTally, u64)>,
    report: Report,
}

impl Sweep<'_> {
    async fn run(
        mut self,
        thresholds: &Thresholds,
        drain: &CancellationToken,
    ) -> Result<Report, String> {
        let snapshot = self.world.replica.snapshot();
        let (looked_at, now, limits) = (snapshot.clone(), self.world.now(), thresholds.clone());
        // A look at millions of objects takes seconds, and heartbeats are to be heard meanwhile.
        let batches = offload::spawn(move || sweep(&looked_at, now, &limits));
        let batches = batches.await.map_err(|error| error.to_string())?;
        for batch in batches {
            if drain.is_cancelled() {
                break;
            }
            if let Err(error) = self.delete(&snapshot, &batch).await {
                self.world.metrics.write_failures.inc();
                warn!(%error, "garbage collection ended early, the next one goes on");
                return Err(error);
            }
        }
        let Report {
            collected,
            overtaken,
        } = self.report;
        if collected.total() + overtaken > 0 {
            info!(
                evals = collected.evals,
                allocs = collected.allocs,
                jobs = collected.jobs,
                deployments = collected.deployments,
                nodes = collected.nodes,
                overtaken,
                "collected"
            );
        }
        Ok(self.report)
    }

    /// Carries out one batch, or none of it when anything has changed since it was decided.
    async fn delete(&mut self, snapshot: &Snapshot, batch: &Batch) -> Result<(), String> {
        let mut version = None;
        if let Some((Key::Job(key), _)) = batch.deletes.first() {
            // A registration that changes nothing makes an evaluation and leaves the job as it is,
            // so the job's revision does not tell of it. Those until now are seen here; those from
            // now on write the job's version, which the transaction compares.
            let fresh = self.world.replica.linearizable(PATIENCE).await;
            let fresh = fresh.map_err(|error| error.to_string())?;
            let mut evals = fresh.evals_by_job(key);
            if evals.any(|eval| !eval.value.status.is_terminal())
                || fresh.allocs_by_job(key).any(|view| !view.is_terminal())
            {
                self.report.overtaken += 1;
                return Ok(());
            }
            version = current_version(&fresh, key);
        }
        let (mut txn, tally) = self
            .txn(snapshot, batch)
            .map_err(|error| error.to_string())?;
        if let Some((key, index)) = version.filter(|(key, _)| !deletes(batch, key)) {
            txn.require_unchanged(&key, index)
                .map_err(|error| error.to_string())?;
        }
        let writer = &self.world.writer;
        let commit = writer.commit_surely(&txn, PATIENCE).await;
        match commit.map_err(|error| error.to_string())? {
            Commit::Done { revision } => {
                if let Some((key, tally)) = tally {
                    self.tallies.insert(key, (tally, revision));
                }
                self.report.collected.add(batch.counts);
                self.world.metrics.collected(batch.counts);
            }
            Commit::Conflict(conflict) if conflict.is_fenced() => {
                self.world.deposed.cancel();
                return Err("another leads now".to_owned());
            }
            Commit::Conflict(conflict) => {
                debug!(?conflict.failed, "changed meanwhile, left alone");
                self.report.overtaken += 1;
            }
        }
        Ok(())
    }

    /// Returns the transaction, and the tally that it stores.
    fn txn(
        &self,
        snapshot: &Snapshot,
        batch: &Batch,
    ) -> Result<(store::Txn, Option<(JobKey, JobTally)>), TxnError> {
        let mut txn = self.world.writer.txn();
        match &batch.guard {
            Some(Guard::Unchanged(key, index)) if !removes_job(batch, key) => {
                txn.require_unchanged(&Key::Job(key.clone()), *index)?;
            }
            Some(Guard::Absent(key)) => {
                txn.require_absent(&Key::Job(key.clone()))?;
            }
            // To delete it is to compare it.
            Some(Guard::Unchanged(..)) | None => {}
        }
        for (key, index) in &batch.deletes {
            txn.delete(key, *index)?;
        }
        let Some((key, more)) = &batch.tally else {
            return Ok((txn, None));
        };
        let stored = self.tallies.get(key).cloned().or_else(|| {
            let stored = snapshot.job_tally(key)?;
            Some((stored.value.clone(), stored.modify_index))
        });
        let name = Key::JobTally(key.clone());
        let tally = match stored {
            Some((mut tally, index)) => {
                if tally.job_create_index != more.job_create_index {
                    // An earlier job of that id has left it.
                    tally = JobTally {
                        job_create_index: more.job_create_index,
                        ..JobTally::default()
                    };
                }
                tally.add(more);
                txn.update(&name, index, &tally)?;
                tally
            }
            None => {
                txn.create(&name, more)?;
                more.clone()
            }
        };
        Ok((txn, Some((key.clone(), tally))))
    }
}

/// Returns the key of the job's current version, and its modify index.
fn current_version(snapshot: &Snapshot, key: &JobKey) -> Option<(Key, u64)> {
    let number = snapshot.job(key)?.value.version;
    let version = snapshot.job_version(key, number)?;
    Some((Key::JobVersion(key.clone(), number), version.modify_index))
}

fn removes_job(batch: &Batch, key: &JobKey) -> bool {
    deletes(batch, &Key::Job(key.clone()))
}

fn deletes(batch: &Batch, key: &Key) -> bool {
    batch.deletes.iter().any(|(deleted, _)| deleted == key)
}
