//! The loop of a service of which one process leads: campaign, lead, resign, again.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, error, info, info_span};

use crate::client::Client;
use crate::election::{Election, ElectionOptions, Leadership};
use crate::replica::Replica;
use crate::retry::Retry;

/// A term that ends sooner than this, by itself, failed: the next is put off, so that a leader that
/// cannot work does not keep others from trying.
const SHORT_TERM: Duration = Duration::from_secs(5);

/// Leads whenever this process is elected, until drained.
///
/// `lead` is called once a term, after the replica has reached the state that the term begins with.
/// When the term is lost its future is dropped, wherever it is: none of its writes could succeed
/// any more. When drained it must return by itself, after what is in hand; the process's grace
/// period bounds that. When it returns or panics, the term is given up and another begins.
pub async fn run_elected<Lead, Leading>(
    options: ElectionOptions,
    replica: Replica,
    client: Client,
    drain: CancellationToken,
    mut lead: Lead,
) where
    Lead: FnMut(Leadership) -> Leading,
    Leading: Future<Output = ()>,
{
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
                    error!(service, term, "leading panicked; another may try");
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
