//! The task that fills a replica: list, then watch, and start over when the watch cannot go on.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use etcd_client::proto::PbEvent;
use futures::FutureExt as _;
use state::{Snapshot, State};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::error::Error;
use crate::replica::decode::to_changes;
use crate::replica::list::list;
use crate::replica::subscription::{Batch, Revision};
use crate::replica::{ReplicaOptions, Shared};
use crate::retry::Retry;
use crate::watch::{Message, PrefixWatch};

/// How many changes are applied before the result is shown, when more are waiting: showing costs a
/// few microseconds however much has changed, and this many take under 10 ms.
const MAX_BATCH: usize = 1_024;
/// How often progress is asked for again while somebody waits for a revision: etcd stays silent
/// when the watch is not up to date, so one request may go unanswered.
const PROGRESS_AGAIN: Duration = Duration::from_millis(20);
/// For how long after somebody began to wait. A revision that does not come within a second is
/// late, or was never committed: then the usual interval is enough.
const PROGRESS_URGENT: Duration = Duration::from_secs(1);
/// How long sending a request on the watch's stream may take; it waits only for room to send.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the watch did not go on.
enum Outcome {
    Drained,
    /// It broke: start it again where it ended.
    Broken(Error),
    /// What follows cannot be had: list again.
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
                    warn!(%error, "cannot list the store");
                    self.measure_silence();
                    tokio::select! {
                        () = drain.cancelled() => return,
                        () = retry.wait() => {}
                    }
                }
            }
        }
    }

    /// Watches, again and again, until drained (`None`) or until a list is needed.
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
                    warn!(%error, index = self.index(), "the watch broke; starting it again");
                }
            }
            tokio::select! {
                () = drain.cancelled() => return None,
                () = retry.wait() => {}
            }
            if let Some(reason) = self.went_back().await {
                return Some(reason);
            }
        }
    }

    /// Tells why a list is needed, when the store is at an older revision than we are: it was
    /// restored from a backup, and a watch would wait for ever for a revision that was already.
    async fn went_back(&self) -> Option<String> {
        let current = self.shared.client.current_revision().await.ok()?;
        if current >= self.index() {
            return None;
        }
        error!(
            current,
            index = self.index(),
            "the store went back: was it restored?"
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
        let mut heard_at = Instant::now();
        let mut quiet = ticks(self.options.progress_interval);
        let mut again = ticks(PROGRESS_AGAIN);
        let mut urgent_until = Instant::now() + PROGRESS_URGENT;
        loop {
            let urgent = *wanted.borrow() > self.index() && Instant::now() < urgent_until;
            tokio::select! {
                biased;
                () = drain.cancelled() => return Outcome::Drained,
                message = watch.next() => {
                    heard_at = Instant::now();
                    if let Some(outcome) = self.take(message, &mut watch) {
                        return outcome;
                    }
                    self.touch();
                    // Lets others run between batches, however fast the watch is.
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(()) = wanted.changed() => {
                    urgent_until = Instant::now() + PROGRESS_URGENT;
                    if *wanted.borrow_and_update() <= self.index() {
                        continue;
                    }
                }
                _ = again.tick(), if urgent => {}
                _ = quiet.tick() => {
                    self.measure_silence();
                    if heard_at.elapsed() > self.options.silence_limit {
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

    /// Applies a message, and those that are already waiting behind it, then shows the result.
    fn take(
        &mut self,
        message: Result<Message, Error>,
        watch: &mut PrefixWatch,
    ) -> Option<Outcome> {
        let started = Instant::now();
        let before = self.index();
        let listened = self.shared.deltas.receiver_count() > 0;
        let mut batch = Vec::new();
        let mut count = 0;
        let mut next = Some(message);
        let mut outcome = None;
        while let Some(message) = next {
            match message {
                Ok(Message::Revisions(revisions)) => {
                    for (revision, events) in revisions {
                        count += events.len();
                        self.apply(revision, events, listened.then_some(&mut batch));
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
            self.show(listened, batch, count > 0);
        }
        metrics
            .lag_revisions
            .set(as_gauge(watch.heard.saturating_sub(self.index())));
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
        let changes = to_changes(&self.shared.client.keyspace, events, &self.options.metrics);
        if let Some(batch) = batch {
            batch.push(Revision {
                revision,
                changes: changes.as_slice().into(),
            });
        }
        self.state.apply(revision, changes);
    }

    /// Makes the state visible: first the snapshot, then its revision, then what changed.
    fn show(&self, listened: bool, batch: Vec<Revision>, changed: bool) {
        self.publish(self.state.snapshot());
        if !batch.is_empty() {
            let _ = self.shared.deltas.send(Batch::Revisions(batch.into()));
        } else if changed && !listened && self.shared.deltas.receiver_count() > 0 {
            // Somebody began to listen while this was applied and may have seen the state before.
            let _ = self.shared.deltas.send(Batch::Untold(self.index()));
        }
    }

    /// Takes over a listed state.
    fn replace(&mut self, state: State) {
        self.state = state;
        self.options.metrics.relists.inc();
        self.publish(self.state.snapshot());
        self.touch();
        info!(index = self.index(), "listed the store");
        let _ = self.shared.deltas.send(Batch::Untold(self.index()));
    }

    fn publish(&self, snapshot: Snapshot) {
        let revision = snapshot.index();
        self.shared.snapshot.store(Arc::new(snapshot));
        self.shared.applied.send_replace(revision);
        self.options
            .metrics
            .applied_revision
            .set(as_gauge(revision));
    }

    fn index(&self) -> u64 {
        self.state.snapshot().index()
    }

    fn touch(&self) {
        let mut last = self
            .shared
            .last_contact
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = Some(Instant::now());
        drop(last);
        self.options.metrics.last_contact_seconds.set(0.0);
    }

    fn measure_silence(&self) {
        let last = *self
            .shared
            .last_contact
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last {
            self.options
                .metrics
                .last_contact_seconds
                .set(last.elapsed().as_secs_f64());
        }
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn as_gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
