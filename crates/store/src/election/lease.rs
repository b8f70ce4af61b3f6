//! Keeps a leader's lease alive and moves its deadline.

use std::collections::VecDeque;
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

/// How often the lease is renewed within its time: a third of that is left for clocks, so of four
/// renewals in the rest one may be late by half of the lease.
const RENEWALS: u32 = 6;
const DOING: &str = "keep a lease";

/// A stream on which a lease is renewed.
pub(super) struct Renewals {
    keeper: LeaseKeeper,
    answers: LeaseKeepAliveStream,
    /// Until when to rely on the lease, by the renewal that opened the stream.
    pub(super) renewed: Instant,
    next: Instant,
}

/// A lease of etcd's, and how long it lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) id: i64,
    pub(super) ttl: Duration,
}

impl Lease {
    /// Asks for a lease.
    pub(super) async fn grant(client: &Client, ttl: Duration) -> Result<Self, Error> {
        let seconds = i64::try_from(ttl.as_secs().max(1)).unwrap_or(i64::MAX);
        let response = client
            .call("grant a lease", || {
                let mut lease = client.lease.clone();
                async move { lease.grant(seconds, None).await }
            })
            .await?;
        // A server may grant more than was asked for; whatever happens, no less is relied on.
        let granted = Duration::from_secs(u64::try_from(response.ttl()).unwrap_or(0));
        Ok(Self {
            id: response.id(),
            ttl: ttl.min(granted),
        })
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

    /// Opens a stream to renew the lease on, which renews it for the first time; `None` when the
    /// lease is gone.
    pub(super) async fn open(
        self,
        client: &Client,
        give_up: Instant,
    ) -> Result<Option<Renewals>, Error> {
        let sent = Instant::now();
        let mut lease = client.lease.clone();
        let opened = timeout_at(give_up, lease.keep_alive(self.id)).await;
        let opened = opened.map_err(|_| Error::Unknown {
            doing: DOING,
            source: None,
        })?;
        match opened {
            Ok((keeper, answers)) => Ok(Some(Renewals {
                keeper,
                answers,
                renewed: self.deadline(sent),
                next: sent + self.ttl / RENEWALS,
            })),
            Err(etcd_client::Error::LeaseKeepAliveError(_)) => Ok(None),
            Err(source) => Err(failed(client, source)),
        }
    }

    /// Keeps the lease alive until `stop`, the deadline passes, or the lease or the election key
    /// turns out to be gone; then the leadership is lost.
    pub(super) async fn keep(
        self,
        client: Client,
        replica: Replica,
        leadership: Leadership,
        renewals: Renewals,
        stop: CancellationToken,
    ) {
        let guard = leadership.lost().clone().drop_guard();
        tokio::select! {
            () = stop.cancelled() => {}
            () = expire(&leadership) => {
                warn!(service = leadership.fence().service, "lease not kept in time: stepping down");
            }
            () = self.renew(&client, &leadership, renewals) => {
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

    /// Renews the lease several times within its time, on one stream after another; returns when
    /// etcd no longer knows it.
    async fn renew(self, client: &Client, leadership: &Leadership, renewals: Renewals) {
        let mut open = Some(renewals);
        loop {
            let ended = match open.take() {
                Some(renewals) => self.renew_on(client, leadership, renewals).await,
                None => match self.open(client, leadership.deadline()).await {
                    Ok(Some(renewals)) => {
                        leadership.prolong(renewals.renewed);
                        open = Some(renewals);
                        continue;
                    }
                    Ok(None) => return,
                    Err(error) => Err(error),
                },
            };
            let Err(error) = ended else {
                return;
            };
            debug!(%error, "keep-alive failed");
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Renews the lease on one stream until that breaks; `Ok` when etcd no longer knows the lease.
    ///
    /// No request waits for the answer to the one before: over slow links that would leave no time
    /// for the next. A stream's answers come in the order of its requests, and should one be
    /// missing, a later answer counts for an earlier request: too little is relied on, never too
    /// much. How many are under way is bounded by the deadline.
    async fn renew_on(
        self,
        client: &Client,
        leadership: &Leadership,
        renewals: Renewals,
    ) -> Result<(), Error> {
        let Renewals {
            mut keeper,
            mut answers,
            mut next,
            ..
        } = renewals;
        let mut under_way = VecDeque::new();
        loop {
            tokio::select! {
                () = sleep_until(next) => {
                    let sent = Instant::now();
                    next = sent + self.ttl / RENEWALS;
                    keeper.keep_alive().await.map_err(|source| failed(client, source))?;
                    under_way.push_back(sent);
                }
                answer = answers.message() => {
                    match answer.map_err(|source| failed(client, source))? {
                        Some(answer) if answer.ttl() > 0 => {
                            if let Some(sent) = under_way.pop_front() {
                                leadership.prolong(self.deadline(sent));
                            }
                        }
                        Some(_) => return Ok(()),
                        None => {
                            return Err(Error::WatchEnded {
                                reason: "the keep-alive stream was closed".into(),
                            });
                        }
                    }
                }
            }
        }
    }
}

fn failed(client: &Client, source: etcd_client::Error) -> Error {
    Error::from_etcd(DOING, client.endpoints(), source)
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
