//! The loop around the [`LookUps`]: fetches what is due, and tells of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use rand::RngExt as _;
use rand::rngs::StdRng;
use service_kit::clock::sleep_until_deadline;
use template::Lookup;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tracing::{Instrument as _, debug};

use crate::fetch::{Fetch, FetchError, Fetched};
use crate::look_ups::LookUps;
use crate::snapshot::Snapshot;

/// Look-ups of a task that are fetched at a time.
const FETCHES: usize = 8;
/// The longest look-up, beyond the limits that a source has itself.
const FETCH_LIMIT: Duration = Duration::from_secs(60);

/// The numbers of changes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Changes of data.
    pub data: u64,
    /// New reasons of failures, and ends of failures.
    pub problems: u64,
}

/// The look-ups of one task. The loop ends when the handle is dropped.
pub struct Watch {
    shared: Arc<Shared>,
    running: AbortHandle,
}

struct Shared {
    look_ups: Mutex<LookUps>,
    started: Instant,
    /// Look-ups are new or due at once.
    wake: Notify,
    seen: watch::Sender<Seen>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Watch {
    /// Begins without look-ups. `rng` spreads polls and retries.
    pub fn spawn(fetch: Arc<dyn Fetch>, rng: StdRng) -> Self {
        let shared = Arc::new(Shared {
            look_ups: Mutex::default(),
            started: Instant::now(),
            wake: Notify::new(),
            seen: watch::Sender::new(Seen::default()),
        });
        let running = run(Arc::clone(&shared), fetch, rng).in_current_span();
        Self {
            shared,
            running: tokio::spawn(running).abort_handle(),
        }
    }

    /// Keeps exactly these look-ups, which a rendering has asked for.
    ///
    /// # Errors
    /// There are too many.
    pub fn want(&self, lookups: &BTreeSet<Lookup>) -> Result<(), String> {
        let now = self.shared.now();
        self.shared.look_ups().want(now, lookups)?;
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Fetches all look-ups again, at once.
    pub fn refresh(&self) {
        let now = self.shared.now();
        self.shared.look_ups().refresh(now);
        self.shared.wake.notify_one();
    }

    /// The answers at this moment.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Arc::new(self.shared.look_ups().answers()))
    }

    /// The reasons of failures at this moment. They have no secrets.
    pub fn problems(&self) -> BTreeMap<Lookup, String> {
        self.shared.look_ups().problems()
    }

    /// Tells of changes from now on.
    pub fn subscribe(&self) -> watch::Receiver<Seen> {
        self.shared.seen.subscribe()
    }
}

impl Shared {
    fn look_ups(&self) -> MutexGuard<'_, LookUps> {
        self.look_ups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}

type Fetching = BoxFuture<'static, (Lookup, Result<Fetched, FetchError>)>;

async fn run(shared: Arc<Shared>, fetch: Arc<dyn Fetch>, mut rng: StdRng) {
    let mut fetching: FuturesUnordered<Fetching> = FuturesUnordered::new();
    loop {
        let room = FETCHES.saturating_sub(fetching.len());
        let due = shared.look_ups().take_due(shared.now(), room);
        for lookup in due {
            let answer = timeout(FETCH_LIMIT, fetch.fetch(lookup.clone()));
            fetching.push(Box::pin(async move {
                let late =
                    || FetchError::new(format!("no answer within {} s", FETCH_LIMIT.as_secs()));
                (lookup, answer.await.unwrap_or_else(|_| Err(late())))
            }));
        }
        // With all places taken, the next answer makes room.
        let is_full = fetching.len() >= FETCHES;
        let deadline = shared.look_ups().next_deadline().filter(|_| !is_full);
        tokio::select! {
            Some((lookup, result)) = fetching.next(), if !fetching.is_empty() => {
                if let Err(error) = &result {
                    debug!(%lookup, error = error.message, "look-up failed");
                }
                let jitter = rng.random();
                let effect = shared.look_ups().answered(shared.now(), &lookup, result, jitter);
                if effect.data || effect.problem {
                    shared.seen.send_modify(|seen| {
                        seen.data += u64::from(effect.data);
                        seen.problems += u64::from(effect.problem);
                    });
                }
            }
            () = shared.wake.notified() => {}
            () = sleep_until_deadline(deadline.map(|at| shared.started + at)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use rand::SeedableRng as _;
    use template::source::{Answer, Source as _};

    use super::*;

    /// Counts its fetches: the answer is their number, and changes every ten seconds.
    #[derive(Default)]
    struct Counter {
        fetches: AtomicUsize,
        open: AtomicUsize,
        most: AtomicUsize,
        is_down: AtomicBool,
    }

    struct Source(Arc<Counter>);

    impl Fetch for Source {
        fn fetch(&self, _: Lookup) -> BoxFuture<'static, Result<Fetched, FetchError>> {
            let counter = Arc::clone(&self.0);
            Box::pin(async move {
                let open = counter.open.fetch_add(1, Ordering::SeqCst) + 1;
                counter.most.fetch_max(open, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                counter.open.fetch_sub(1, Ordering::SeqCst);
                if counter.is_down.load(Ordering::SeqCst) {
                    return Err(FetchError::new("down"));
                }
                let number = counter.fetches.fetch_add(1, Ordering::SeqCst) + 1;
                Ok(Fetched {
                    answer: Some(Answer::Names(vec![number.to_string()])),
                    again: Some(Duration::from_secs(10)),
                })
            })
        }
    }

    fn secret(path: &str) -> Lookup {
        Lookup::Secret {
            path: path.to_owned(),
        }
    }

    fn watch() -> (Arc<Counter>, Watch) {
        let counter = Arc::new(Counter::default());
        let source = Arc::new(Source(Arc::clone(&counter)));
        (counter, Watch::spawn(source, StdRng::seed_from_u64(1)))
    }

    fn answer(watch: &Watch) -> Answer {
        watch.snapshot().look_up(&secret("a"))
    }

    fn number(number: usize) -> Answer {
        Answer::Names(vec![number.to_string()])
    }

    #[tokio::test(start_paused = true)]
    async fn data_is_fetched_once_wanted_and_polled_from_then_on() {
        let (counter, watch) = watch();
        let mut seen = watch.subscribe();
        assert_eq!(answer(&watch), Answer::Missing);
        watch.want(&BTreeSet::from([secret("a")])).unwrap();
        seen.changed().await.unwrap();
        assert_eq!(answer(&watch), number(1));
        let before = Instant::now();
        seen.changed().await.unwrap();
        let waited = before.elapsed();
        assert!((9..=11).contains(&waited.as_secs()), "{waited:?}");
        assert_eq!(answer(&watch), number(2));
        watch.refresh();
        seen.changed().await.unwrap();
        assert_eq!(answer(&watch), number(3));
        drop(watch);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(
            counter.fetches.load(Ordering::SeqCst),
            3,
            "the loop ends with the handle"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_keeps_the_data_and_tells_the_reason() {
        let (counter, watch) = watch();
        let mut seen = watch.subscribe();
        watch.want(&BTreeSet::from([secret("a")])).unwrap();
        seen.changed().await.unwrap();
        counter.is_down.store(true, Ordering::SeqCst);
        seen.changed().await.unwrap();
        assert_eq!(
            *seen.borrow(),
            Seen {
                data: 1,
                problems: 1
            }
        );
        assert_eq!(answer(&watch), number(1));
        assert_eq!(watch.problems()[&secret("a")], "down");
        counter.is_down.store(false, Ordering::SeqCst);
        seen.changed().await.unwrap();
        assert!(watch.problems().is_empty());
        assert_eq!(answer(&watch), number(2));
    }

    #[tokio::test(start_paused = true)]
    async fn few_look_ups_are_fetched_at_a_time() {
        let (counter, watch) = watch();
        let mut seen = watch.subscribe();
        let many = (0..50).map(|number| secret(&number.to_string())).collect();
        watch.want(&many).unwrap();
        seen.wait_for(|seen| seen.data == 50).await.unwrap();
        assert_eq!(counter.most.load(Ordering::SeqCst), FETCHES);
    }
}
