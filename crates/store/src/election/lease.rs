//! Keeps a leader's lease alive and moves its deadline.

use std::time::Duration;

use etcd_client::{LeaseKeepAliveStream, LeaseKeeper};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::client::Client;
use crate::election::Leadership;
use crate::error::Error;
use crate::replica::Replica;

/// How long after an attempt that failed another is made: several fit before the deadline.
const AGAIN: Duration = Duration::from_millis(100);

/// A lease of etcd's, and how long it lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) id: i64,
    pub(super) ttl: Duration,
}

impl Lease {
    /// Asks for a lease. Returns it with the moment before which it cannot expire.
    pub(super) async fn grant(client: &Client, ttl: Duration) -> Result<(Self, Instant), Error> {
        let seconds = i64::try_from(ttl.as_secs().max(1)).unwrap_or(i64::MAX);
        let sent = Instant::now();
        let response = client
            .call("grant a lease", || {
                let mut lease = client.lease.clone();
                async move { lease.grant(seconds, None).await }
            })
            .await?;
        // A server may grant more than was asked for; whatever happens, no less is relied on.
        let granted = Duration::from_secs(u64::try_from(response.ttl()).unwrap_or(0));
        let lease = Self {
            id: response.id(),
            ttl: ttl.min(granted),
        };
        Ok((lease, lease.deadline(sent)))
    }

    /// Gives the lease back; every key bound to it vanishes.
    pub(super) async fn revoke(self, client: &Client) -> Result<(), Error> {
        let revoked = client.call("revoke a lease", || {
            let mut lease = client.lease.clone();
            async move { lease.revoke(self.id).await }
        });
        revoked.await.map(drop)
    }

    /// Returns until when to rely on the lease, given when the request that (re)started it was
    /// sent: the server started counting later, and a third of its time is left for clocks that
    /// run differently.
    fn deadline(self, sent: Instant) -> Instant {
        sent + self.ttl - self.ttl / 3
    }

    /// Keeps the lease alive until `stop`, the deadline passes, or the lease or the election key
    /// turns out to be gone; then the leadership is lost.
    pub(super) async fn keep(
        self,
        client: Client,
        replica: Replica,
        leadership: Leadership,
        stop: CancellationToken,
    ) {
        let guard = leadership.lost().clone().drop_guard();
        tokio::select! {
            () = stop.cancelled() => {}
            () = expire(&leadership) => {
                warn!(service = leadership.fence().service, "lease not kept in time: stepping down");
            }
            () = self.renew(&client, &leadership) => {
                warn!(service = leadership.fence().service, "the lease is gone: stepping down");
            }
            () = self.watch_key(&replica, &leadership) => {
                warn!(service = leadership.fence().service, "the key is gone: stepping down");
            }
        }
        drop(guard);
    }

    /// Returns when the replica shows that the election key is no longer this term's, although the
    /// lease lives: somebody deleted it.
    async fn watch_key(self, replica: &Replica, leadership: &Leadership) {
        let fence = leadership.fence();
        loop {
            tokio::time::sleep(self.ttl / 3).await;
            let snapshot = replica.snapshot();
            let holder = snapshot
                .leader(&fence.service)
                .map(|leader| leader.create_index);
            if snapshot.index() >= fence.create_revision && holder != Some(fence.create_revision) {
                return;
            }
        }
    }

    /// Renews the lease every third of its time; returns when etcd no longer knows it.
    async fn renew(self, client: &Client, leadership: &Leadership) {
        let mut stream = None;
        let mut sent = Instant::now();
        loop {
            match self
                .renew_once(client, &mut stream, leadership.deadline())
                .await
            {
                Ok(Some(renewed)) => {
                    leadership.prolong(self.deadline(renewed));
                    sent = renewed;
                    sleep_until(sent + self.ttl / 3).await;
                }
                Ok(None) => return,
                Err(error) => {
                    // The next answer on this stream could belong to the request given up on,
                    // and be taken for that of a later one: a new stream has no such doubt.
                    stream = None;
                    debug!(%error, since_last = ?sent.elapsed(), "keep-alive failed");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// Returns when the request was sent that was answered; `None` when the lease is gone.
    async fn renew_once(
        self,
        client: &Client,
        stream: &mut Option<(LeaseKeeper, LeaseKeepAliveStream)>,
        deadline: Instant,
    ) -> Result<Option<Instant>, Error> {
        let doing = "keep a lease";
        let unknown = |_| Error::Unknown {
            doing,
            source: None,
        };
        let failed = |source| Error::from_etcd(doing, client.endpoints(), source);
        // Half of the time to the deadline, so that there is some left for another connection.
        let patience = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        let sent = Instant::now();
        let Some((keeper, answers)) = stream else {
            let mut lease = client.lease.clone();
            // Opening a stream sends the first request on it.
            return match timeout_at(patience, lease.keep_alive(self.id))
                .await
                .map_err(unknown)?
            {
                Ok(opened) => {
                    *stream = Some(opened);
                    Ok(Some(sent))
                }
                Err(etcd_client::Error::LeaseKeepAliveError(_)) => Ok(None),
                Err(error) => Err(failed(error)),
            };
        };
        let renewed = async {
            keeper.keep_alive().await?;
            answers.message().await
        };
        match timeout_at(patience, renewed)
            .await
            .map_err(unknown)?
            .map_err(failed)?
        {
            Some(answer) if answer.ttl() > 0 => Ok(Some(sent)),
            Some(_) => Ok(None),
            None => Err(Error::WatchEnded {
                reason: "the keep-alive stream was closed".into(),
            }),
        }
    }
}

/// Returns once the deadline has passed without having been moved.
async fn expire(leadership: &Leadership) {
    loop {
        let deadline = leadership.deadline();
        sleep_until(deadline).await;
        if leadership.deadline() <= deadline {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::Fence;

    #[test]
    fn a_third_of_the_lease_is_left_for_clocks_that_differ() {
        let sent = Instant::now();
        let lease = Lease {
            id: 1,
            ttl: Duration::from_secs(3),
        };
        assert_eq!(lease.deadline(sent), sent + Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_is_current_until_its_deadline_and_no_longer() {
        let fence = Fence {
            service: "eval-broker".to_owned(),
            create_revision: 7,
        };
        let leadership = Leadership::new(fence, Instant::now() + Duration::from_secs(2));
        tokio::time::advance(Duration::from_millis(1_999)).await;
        assert!(leadership.is_current());
        leadership.prolong(Instant::now() - Duration::from_secs(1));
        assert!(
            leadership.is_current(),
            "an answer to an older request takes nothing away"
        );
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(
            !leadership.is_current(),
            "although nobody has said that it is lost"
        );
        leadership.prolong(Instant::now() + Duration::from_secs(2));
        leadership.lose();
        assert!(!leadership.is_current(), "what is lost stays lost");
    }
}
