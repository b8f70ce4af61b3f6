//! Blocking reads: a snapshot as fresh as requested, once the result has changed.

use std::time::Duration;

use futures::future::select_all;
use gateway_core::{Error, GaugeGuard};
use proto::v1::QueryMeta;
use rand::RngExt as _;
use state::{Snapshot, Table};
use tokio::sync::watch;
use tokio::time::Instant;

use super::options::Mode;
use crate::gateway::Gateway;

/// The minimum interval between two checks of a blocked read: a table that changes a hundred times a
/// second is checked fifty times. The first change is answered at once.
const MIN_RECHECK: Duration = Duration::from_millis(20);
/// The pause after a check, as a multiple of the time that the check took: a job of many allocations
/// is checked less often, so that each waiting read costs a tenth of a core at most.
const RECHECK_PART: u32 = 9;
/// The jitter of a wait, as a fraction of it, so that reads that began together do not return
/// together. Source: Nomad's public behaviour.
const JITTER_PART: u32 = 16;
/// The part of the caller's timeout that is left for the answer to arrive.
const MARGIN: Duration = Duration::from_millis(500);
/// The wait for a caller without a timeout: that of [`service_kit`], less the margin.
const SILENT_CALLER: Duration = Duration::from_secs(59);

/// A read of a snapshot.
pub trait Query {
    type Answer;

    /// The tables that the result depends on.
    fn tables(&self) -> &[Table];

    /// Returns the index of the result, never 0.
    fn index(&self, snapshot: &Snapshot) -> u64;

    /// Returns the result and, for a list, the token of its next page.
    ///
    /// # Errors
    /// The object does not exist.
    fn answer(&self, snapshot: &Snapshot) -> Result<(Self::Answer, String), Error>;
}

/// Answers `query`.
///
/// # Errors
/// Those of the query; there is no fresh state.
pub async fn answer<Q: Query>(
    gateway: &Gateway,
    mode: Mode,
    caller_timeout: Option<Duration>,
    query: &Q,
) -> Result<(Q::Answer, QueryMeta), Error> {
    let give_up = Instant::now() + max_wait(mode.wait, caller_timeout);
    // The subscription comes before the state, so that a change in between is noticed.
    let mut changes = gateway.tables.subscribe(query.tables());
    let mut snapshot = gateway.core.snapshot(mode.stale).await?;
    let mut index = query.index(&snapshot);
    if mode.min_index != 0 && index <= mode.min_index {
        let _blocked = GaugeGuard::new(&gateway.metrics.blocked_queries);
        while index <= mode.min_index {
            let woken = tokio::select! {
                () = any_change(&mut changes) => true,
                () = tokio::time::sleep_until(give_up) => false,
                // An answer now is better than a broken connection soon.
                () = gateway.drain.cancelled() => false,
            };
            if !woken {
                break;
            }
            let check_started = Instant::now();
            snapshot = gateway.core.replica.snapshot();
            index = query.index(&snapshot);
            if index <= mode.min_index {
                let pause = MIN_RECHECK.max(check_started.elapsed() * RECHECK_PART);
                tokio::time::sleep_until(give_up.min(Instant::now() + pause)).await;
            }
        }
    }
    let (answer, next_token) = query.answer(&snapshot)?;
    let last_contact = gateway
        .core
        .replica
        .last_contact()
        .unwrap_or_default()
        .as_millis();
    let last_contact_ms = u64::try_from(last_contact).unwrap_or(u64::MAX);
    Ok((
        answer,
        QueryMeta {
            index,
            last_contact_ms,
            next_token,
        },
    ))
}

/// Returns how long to block: the requested wait with jitter, within the caller's timeout.
fn max_wait(wait: Duration, caller_timeout: Option<Duration>) -> Duration {
    let jitter = (wait / JITTER_PART).mul_f64(rand::rng().random_range(0.0..1.0));
    let caller = caller_timeout.map_or(SILENT_CALLER, |timeout| timeout.saturating_sub(MARGIN));
    (wait + jitter).min(caller)
}

async fn any_change(changes: &mut [watch::Receiver<u64>]) {
    let changed = changes.iter_mut().map(|receiver| {
        Box::pin(async move {
            if receiver.changed().await.is_err() {
                // The gateway stops; the drain ends the wait.
                std::future::pending::<()>().await;
            }
        })
    });
    select_all(changed).await;
}
