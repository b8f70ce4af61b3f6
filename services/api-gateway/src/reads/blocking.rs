//! Answers a read: gets a snapshot as fresh as asked, waits until the result has changed.

use std::time::Duration;

use futures::future::select_all;
use proto::v1::QueryMeta;
use rand::RngExt as _;
use state::{Snapshot, Table};
use tokio::sync::watch;
use tokio::time::Instant;

use super::options::Mode;
use crate::error::Error;
use crate::gateway::Gateway;
use crate::metrics::Held;

/// How soon a blocked read looks again after it has looked: what changes a hundred times a second
/// is looked at fifty times. The first change is answered at once.
const MIN_RECHECK: Duration = Duration::from_millis(20);
/// How much longer than a look takes the pause after it is: a job of many allocations is looked at
/// less often, so that however many wait for it, each costs a tenth of a core at most.
const RECHECK_PART: u32 = 9;
/// Waits are made longer by up to this part of themselves, so that reads that began together do
/// not return together. Source: Nomad's public behaviour.
const JITTER_PART: u32 = 16;
/// What is left of the caller's own timeout for the answer to reach it.
const MARGIN: Duration = Duration::from_millis(500);
/// How long a caller waits that does not say: what [`service_kit`] gives it, less the margin.
const SILENT_CALLER: Duration = Duration::from_secs(59);

/// The revisions of the tables' last changes, for those who wait for one.
#[derive(Debug)]
pub struct TableChanges {
    tables: [watch::Sender<u64>; ALL.len()],
}

const ALL: [Table; 12] = [
    Table::Jobs,
    Table::JobVersions,
    Table::Evals,
    Table::Allocs,
    Table::Nodes,
    Table::Deployments,
    Table::Elections,
    Table::SchedulerConfig,
    Table::NodePools,
    Table::Volumes,
    Table::Namespaces,
    Table::Plans,
];

impl Default for TableChanges {
    fn default() -> Self {
        Self {
            tables: std::array::from_fn(|_| watch::Sender::new(0)),
        }
    }
}

impl TableChanges {
    pub fn note(&self, table: Table, revision: u64) {
        self.tables[table as usize].send_replace(revision);
    }

    /// Wakes everybody: anything may have changed.
    pub fn note_all(&self, revision: u64) {
        for table in ALL {
            self.note(table, revision);
        }
    }

    fn subscribe(&self, tables: &[Table]) -> Vec<watch::Receiver<u64>> {
        tables
            .iter()
            .map(|table| self.tables[*table as usize].subscribe())
            .collect()
    }
}

/// A question to a snapshot.
pub trait Query {
    type Answer;

    /// What to look at again for when any of it changes.
    fn tables(&self) -> &[Table];

    /// Returns the index of the result, never 0.
    fn index(&self, snapshot: &Snapshot) -> u64;

    /// Returns the result and, for a list, the token of its next page.
    ///
    /// # Errors
    /// What was asked for is not there.
    fn answer(&self, snapshot: &Snapshot) -> Result<(Self::Answer, String), Error>;
}

/// Answers `query`.
///
/// # Errors
/// Those of the query; fresh state cannot be had.
pub async fn answer<Q: Query>(
    gateway: &Gateway,
    mode: Mode,
    caller_timeout: Option<Duration>,
    query: &Q,
) -> Result<(Q::Answer, QueryMeta), Error> {
    let give_up = Instant::now() + patience(mode.wait, caller_timeout);
    // First the ear, then the state: a change in between is heard.
    let mut changes = gateway.tables.subscribe(query.tables());
    let mut snapshot = gateway.snapshot(mode.stale).await?;
    let mut index = query.index(&snapshot);
    if mode.min_index != 0 && index <= mode.min_index {
        let _held = Held::new(&gateway.metrics.blocked_queries);
        while index <= mode.min_index {
            let woken = tokio::select! {
                () = any_change(&mut changes) => true,
                () = tokio::time::sleep_until(give_up) => false,
                // Better an answer now than a broken connection soon.
                () = gateway.drain.cancelled() => false,
            };
            if !woken {
                break;
            }
            let looking = Instant::now();
            snapshot = gateway.replica.snapshot();
            index = query.index(&snapshot);
            if index <= mode.min_index {
                let pause = MIN_RECHECK.max(looking.elapsed() * RECHECK_PART);
                tokio::time::sleep_until(give_up.min(Instant::now() + pause)).await;
            }
        }
    }
    let (answer, next_token) = query.answer(&snapshot)?;
    let last_contact = gateway
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

/// Returns how long to block: what was asked for and some jitter, but not past the caller.
fn patience(wait: Duration, caller_timeout: Option<Duration>) -> Duration {
    let jitter = (wait / JITTER_PART).mul_f64(rand::rng().random_range(0.0..1.0));
    let caller = caller_timeout.map_or(SILENT_CALLER, |timeout| timeout.saturating_sub(MARGIN));
    (wait + jitter).min(caller)
}

async fn any_change(changes: &mut [watch::Receiver<u64>]) {
    let changed = changes.iter_mut().map(|receiver| {
        Box::pin(async move {
            if receiver.changed().await.is_err() {
                // Nobody will say anything any more; the drain ends the wait.
                std::future::pending::<()>().await;
            }
        })
    });
    select_all(changed).await;
}
