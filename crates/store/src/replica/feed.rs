//! The task that feeds a replica: list, then watch, and list again when the watch cannot continue.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::proto::PbEvent;
use futures::FutureExt as _;
use state::{Change, Key, Snapshot, State};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::error::Error;
use crate::replica::batch::{Batch, Revision};
use crate::replica::decode::to_changes;
use crate::replica::list::list;
use crate::replica::options::ReplicaOptions;
use crate::replica::shared::Shared;
use crate::retry::Retry;
use crate::watch::{Message, PrefixWatch};

/// Changes that are applied before the state is published, while more are waiting: publishing costs
/// a few microseconds for any changes, and this many changes take under 10 ms.
const MAX_BATCH: usize = 1_024;
/// Interval of progress requests while a reader waits for a revision: etcd does not answer when the
/// watch is not up to date, so one request is not enough.
const URGENT_INTERVAL: Duration = Duration::from_millis(20);
/// Time that the watch has to bring a wanted revision by itself: it is on its way, unless it is the
/// revision of a key outside the prefix. A request for each wait would cost etcd more than the changes.
const CATCH_UP_TIMEOUT: Duration = Duration::from_millis(2);
/// Time with that interval after a reader began to wait. A revision that does not come within a
/// second is late or was never committed; then the usual interval is enough.
const URGENT_PERIOD: Duration = Duration::from_secs(1);
/// Timeout of sending a request on the watch's stream; it waits only for flow control.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The end of one watch.
enum Outcome {
    Drained,
    /// It broke: resume it where it ended.
    Broken(Error),
    /// The next changes are not available: list again.
    MustList(String),
}

pub(super) struct Feed {
    shared: Arc<Shared>,
    options: ReplicaOptions,
    state: State,
}

impl Feed {
    pub(super) fn new(shared: Arc<Shared>, options: ReplicaOptions) -> Self {
        Self {
            shared,
            options,
            state: State::default(),
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) async fn run(mut self, drain: CancellationToken) {
        let mut retry = Retry::default();
        loop {
            let listed = tokio::select! {
                () = drain.cancelled() => return,
                listed = list(&self.shared.client, &self.options) => listed,
            };
            match listed {
                Ok(state) => {
                    retry.reset();
                    self.replace(state);
                    let Some(reason) = self.follow(&drain).await else {
                        return;
                    };
                    warn!(reason, index = self.index(), "listing the store again");
                }
                Err(error) => {
                    warn!(error = error.chain(), "the replica is not fed; retrying");
                    self.measure_silence();
                    tokio::select! {
                        () = drain.cancelled() => return,
                        () = retry.wait() => {}
                    }
                }
            }
        }
    }

    /// Watches and resumes until drained (`None`) or until a list is needed; returns the reason.
    async fn follow(&mut self, drain: &CancellationToken) -> Option<String> {
        let mut retry = Retry::default();
        loop {
            let before = self.index();
            match self.watch(drain).await {
                Outcome::Drained => return None,
                Outcome::MustList(reason) => return Some(reason),
                Outcome::Broken(error) => {
                    self.options.metrics.watch_failures.inc();
                    if self.index() > before {
                        retry.reset();
                    }
                    warn!(
                        error = error.chain(),
                        index = self.index(),
                        "the watch broke: resuming it"
                    );
                }
            }
            tokio::select! {
                () = drain.cancelled() => return None,
                () = retry.wait() => {}
            }
            if let Some(reason) = self.revision_regressed().await {
                return Some(reason);
            }
        }
    }

    /// Returns the reason for a list when the store's revision is older than the replica's: it was
    /// restored from a backup, and a watch would wait for a revision that already passed.
    async fn revision_regressed(&self) -> Option<String> {
        let current = self.shared.client.current_revision().await.ok()?;
        if current >= self.index() {
            return None;
        }
        error!(
            current,
            index = self.index(),
            "the store's revision went back: it was probably restored from a backup"
        );
        Some(format!("the store went back to revision {current}"))
    }

    async fn watch(&mut self, drain: &CancellationToken) -> Outcome {
        let shared = Arc::clone(&self.shared);
        let started = tokio::select! {
            () = drain.cancelled() => return Outcome::Drained,
            started = PrefixWatch::start(&shared.client, self.index() + 1) => started,
        };
        let mut watch = match started {
            Ok(watch) => watch,
            Err(error) => return Outcome::Broken(error),
        };
        let mut wanted = shared.wanted.subscribe();
        let mut received_at = Instant::now();
        let mut quiet = ticks(self.options.progress_interval);
        let mut again = ticks(URGENT_INTERVAL);
        let mut urgent_until = Instant::now() + URGENT_PERIOD;
        let mut patient_until = None;
        loop {
            let urgent = *wanted.borrow() > self.index() && Instant::now() < urgent_until;
            tokio::select! {
                biased;
                () = drain.cancelled() => return Outcome::Drained,
                message = watch.next() => {
                    received_at = Instant::now();
                    if let Some(outcome) = self.take(message, &mut watch) {
                        return outcome;
                    }
                    self.touch();
                    // Lets other tasks run between batches.
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(()) = wanted.changed() => {
                    urgent_until = Instant::now() + URGENT_PERIOD;
                    if *wanted.borrow_and_update() > self.index() && patient_until.is_none() {
                        patient_until = Some(Instant::now() + CATCH_UP_TIMEOUT);
                    }
                    continue;
                }
                () = sleep_until(patient_until.unwrap_or(received_at)), if patient_until.is_some() => {
                    patient_until = None;
                    if *wanted.borrow() <= self.index() {
                        continue;
                    }
                    again.reset();
                }
                _ = again.tick(), if urgent && patient_until.is_none() => {}
                _ = quiet.tick() => {
                    self.measure_silence();
                    if received_at.elapsed() > self.options.watch_timeout {
                        let reason = "the store has been silent for too long".to_owned();
                        return Outcome::Broken(Error::WatchEnded { reason });
                    }
                }
            }
            if let Err(error) = watch.request_progress(SEND_TIMEOUT).await {
                return Outcome::Broken(error);
            }
        }
    }

    /// Applies a message and those already waiting behind it, then publishes the state.
    fn take(
        &mut self,
        message: Result<Message, Error>,
        watch: &mut PrefixWatch,
    ) -> Option<Outcome> {
        let started = Instant::now();
        let before = self.index();
        let has_subscribers = self.shared.deltas.receiver_count() > 0;
        let mut batch = Vec::new();
        let mut count = 0;
        let mut next = Some(message);
        let mut outcome = None;
        while let Some(message) = next {
            match message {
                Ok(Message::Revisions(revisions)) => {
                    for (revision, events) in revisions {
                        count += events.len();
                        self.apply(revision, events, has_subscribers.then_some(&mut batch));
                    }
                }
                Ok(Message::Progress(revision)) => self.state.advance(revision),
                Ok(Message::Nothing) => {}
                Err(Error::Compacted { revision }) => {
                    let reason = format!("history up to revision {revision} is compacted");
                    outcome = Some(Outcome::MustList(reason));
                    break;
                }
                Err(error) => {
                    outcome = Some(Outcome::Broken(error));
                    break;
                }
            }
            next = if count < MAX_BATCH {
                watch.next().now_or_never()
            } else {
                None
            };
        }
        let metrics = &self.options.metrics;
        metrics.changes.inc_by(count as u64);
        metrics
            .apply_seconds
            .inc_by(started.elapsed().as_secs_f64());
        if self.index() > before {
            self.show(has_subscribers, batch, count > 0);
        }
        metrics
            .lag_revisions
            .set(as_gauge(watch.newest.saturating_sub(self.index())));
        outcome
    }

    fn apply(&mut self, revision: u64, events: Vec<PbEvent>, batch: Option<&mut Vec<Revision>>) {
        if revision <= self.index() {
            debug!(
                revision,
                index = self.index(),
                "the watch repeated a revision"
            );
            return;
        }
        let changes = to_changes(
            &self.shared.client.keyspace,
            events,
            &self.options.metrics,
            self.options.interest,
        );
        if let Some(batch) = batch {
            let noted = changes.iter().filter(|change| !is_job_version(change));
            batch.push(Revision {
                revision,
                changes: noted.cloned().collect(),
            });
        }
        self.state.apply(revision, changes);
    }

    /// Publishes the state: first the snapshot, then its revision, then the changes.
    fn show(&self, has_subscribers: bool, batch: Vec<Revision>, changed: bool) {
        self.publish(self.state.snapshot());
        if !batch.is_empty() {
            let _ = self.shared.deltas.send(Batch::Revisions(batch.into()));
        } else if changed && !has_subscribers && self.shared.deltas.receiver_count() > 0 {
            // A subscriber joined during the batch and may have seen the state before it.
            let _ = self.shared.deltas.send(Batch::Gap(self.index()));
        }
    }

    /// Replaces the state by a listed one.
    fn replace(&mut self, state: State) {
        self.state = state;
        self.options.metrics.relists.inc();
        self.publish(self.state.snapshot());
        self.touch();
        info!(index = self.index(), "listed the store");
        let _ = self.shared.deltas.send(Batch::Gap(self.index()));
    }

    fn publish(&self, snapshot: Snapshot) {
        let revision = snapshot.index();
        self.shared.publish(snapshot);
        self.options
            .metrics
            .applied_revision
            .set(as_gauge(revision));
    }

    fn index(&self) -> u64 {
        self.state.snapshot().index()
    }

    fn touch(&self) {
        self.shared.touch();
        self.options.metrics.last_contact_seconds.set(0.0);
    }

    fn measure_silence(&self) {
        if let Some(last) = self.shared.last_contact() {
            self.options
                .metrics
                .last_contact_seconds
                .set(last.elapsed().as_secs_f64());
        }
    }
}

/// Tells whether a change stores a version of a job, which comes with the job and is as large.
fn is_job_version(change: &Change) -> bool {
    let Change::Put { key, .. } = change else {
        return false;
    };
    matches!(key, Key::JobVersion(..))
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn as_gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
