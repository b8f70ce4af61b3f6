//! The loop of an elected service: campaign, lead, resign, repeat.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, error, info, info_span};

use crate::client::Client;
use crate::election::candidate::{Election, ElectionOptions};
use crate::election::leadership::Leadership;
use crate::replica::Replica;
use crate::retry::Retry;

/// A term that ends by itself within this time counts as failed. The next campaign backs off, so that
/// a leader that cannot work leaves the election to other candidates.
const SHORT_TERM: Duration = Duration::from_secs(5);

/// Leads whenever this process is elected, until drained.
///
/// `lead` is called once per term, after the replica has reached the revision of the election. When
/// the term is lost, its future is dropped at any point: none of its writes could succeed any more.
/// A drained `lead` must finish its current work and return, within the process's grace period. After
/// its return or panic, this process resigns and campaigns again.
pub fn run_elected<'a, Lead, Leading>(
    options: ElectionOptions,
    replica: Replica,
    client: Client,
    drain: CancellationToken,
    mut lead: Lead,
) -> BoxFuture<'a, ()>
where
    Lead: FnMut(Leadership) -> Leading + Send + 'a,
    Leading: Future<Output = ()> + Send + 'a,
{
    let lead: BoxedLead<'a> = Box::new(move |leadership| Box::pin(lead(leadership)));
    run_boxed(options, replica, client, drain, lead)
}

type BoxedLead<'a> = Box<dyn FnMut(Leadership) -> BoxFuture<'a, ()> + Send + 'a>;

/// Not generic, so that elections are compiled in this crate and not in every service.
fn run_boxed(
    options: ElectionOptions,
    replica: Replica,
    client: Client,
    drain: CancellationToken,
    lead: BoxedLead<'_>,
) -> BoxFuture<'_, ()> {
    Box::pin(run(options, replica, client, drain, lead))
}

async fn run(
    options: ElectionOptions,
    replica: Replica,
    client: Client,
    drain: CancellationToken,
    mut lead: BoxedLead<'_>,
) {
    let metrics = options.metrics.clone();
    let election = Election::new(options, client, replica);
    let mut retry = Retry::default();
    let mut left_behind = None;
    while let Some(won) = election.campaign(&drain, left_behind.as_ref()).await {
        let began = Instant::now();
        metrics.terms.inc();
        metrics.leader.set(1);
        let leadership = won.leadership.clone();
        let service = leadership.fence().service.clone();
        let term = leadership.fence().create_revision;
        let leading = AssertUnwindSafe(lead(leadership.clone()))
            .catch_unwind()
            .instrument(info_span!("term", service, term));
        let failed = tokio::select! {
            biased;
            () = leadership.lost().cancelled() => {
                info!(service, term, "no longer the leader");
                false
            }
            ended = leading => {
                if ended.is_err() {
                    error!(service, term, "the leader's loop panicked: resigning");
                }
                !drain.is_cancelled()
            }
        };
        metrics.leader.set(0);
        left_behind = election.resign(won).await;
        if !failed || began.elapsed() > SHORT_TERM {
            retry.reset();
        }
        if failed {
            tokio::select! {
                () = drain.cancelled() => {}
                () = retry.wait() => {}
            }
        }
    }
}
