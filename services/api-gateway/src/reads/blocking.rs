//! Blocking reads: a snapshot as fresh as requested, once the result has changed.

use std::time::Duration;

use futures::future::select_all;
use gateway_core::{Error, GaugeGuard};
use listing::blocking::{recheck_pause, wait_limit};
use proto::v1::QueryMeta;
use rand::RngExt as _;
use state::{Snapshot, Table};
use tokio::sync::watch;
use tokio::time::Instant;

use super::options::Mode;
use crate::gateway::Gateway;

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
    let jitter = rand::rng().random_range(0.0..1.0);
    let give_up = Instant::now() + wait_limit(mode.wait, caller_timeout, jitter);
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
                let pause = recheck_pause(check_started.elapsed());
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
