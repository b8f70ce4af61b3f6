//! A lease of etcd, and that of a leader: renewals, and the deadline that each renewal moves.

use std::collections::VecDeque;
use std::time::Duration;

use etcd_client::{LeaseKeepAliveStream, LeaseKeeper};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::client::Client;
use crate::election::leadership::Leadership;
use crate::error::Error;
use crate::replica::Replica;

/// Wait after a failed attempt: several attempts fit before the deadline.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Renewals within the lease's time. A third of the time is left for clock drift, so of the four
/// renewals in the rest one may be late by half of the lease.
const RENEWALS: u32 = 6;
const DOING: &str = "keep a lease";

/// A stream that renews a lease.
pub(crate) struct Renewals {
    keeper: LeaseKeeper,
    answers: LeaseKeepAliveStream,
    /// Deadline of the lease, by the renewal that opened the stream.
    pub(super) renewed: Instant,
    next: Instant,
}

/// A lease of etcd with its time to live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    pub(crate) id: i64,
    pub(crate) ttl: Duration,
}

impl Lease {
    /// Asks for a lease.
    pub(crate) async fn grant(client: &Client, ttl: Duration) -> Result<Self, Error> {
        let seconds = i64::try_from(ttl.as_secs().max(1)).unwrap_or(i64::MAX);
        let response = client
            .call("grant a lease", || {
                let mut lease = client.lease.clone();
                async move { lease.grant(seconds, None).await }
            })
            .await?;
        // A server may grant more than requested; the shorter time is relied on.
        let granted = Duration::from_secs(u64::try_from(response.ttl()).unwrap_or(0));
        Ok(Self {
            id: response.id(),
            ttl: ttl.min(granted),
        })
    }

    /// Revokes the lease; every key bound to it is deleted.
    pub(crate) async fn revoke(self, client: &Client) -> Result<(), Error> {
        let revoked = client.call("revoke a lease", || {
            let mut lease = client.lease.clone();
            async move { lease.revoke(self.id).await }
        });
        revoked.await.map(drop)
    }

    /// Returns the deadline of the lease after a grant or renewal whose request was `sent`. The server
    /// starts counting later, and a third of the time is left for clock drift.
    fn deadline(self, sent: Instant) -> Instant {
        sent + self.ttl - self.ttl / 3
    }

    /// Opens a stream of renewals, which renews the lease once; `None` when the lease has expired.
    pub(crate) async fn open(
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

    /// Renews the lease until `stop`, the deadline, or the end of the lease or the election key; then
    /// the leadership is lost.
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
                warn!(service = leadership.fence().service, "lease not renewed in time: stepping down");
            }
            () = self.renew(&client, &leadership, renewals) => {
                warn!(service = leadership.fence().service, "the lease has expired: stepping down");
            }
            () = self.watch_key(&replica, &leadership) => {
                warn!(service = leadership.fence().service, "the election key was deleted: stepping down");
            }
        }
        drop(guard);
    }

    /// Returns when the replica shows that the election key is no longer this term's, although the
    /// lease lives: it was deleted from outside.
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

    /// Renews the lease, on one stream after another; returns when etcd no longer knows it.
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
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Renews the lease on one stream until that breaks; `Ok` when etcd no longer knows the lease.
    ///
    /// Requests do not wait for the previous answer: over slow links no time would be left for the
    /// next. A stream's answers come in the order of its requests; if one is missing, a later answer
    /// counts for an earlier request, which errs on the safe side. The deadline bounds the number of
    /// requests under way.
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

/// Returns once the deadline has passed without a renewal.
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
    fn a_third_of_the_lease_is_left_for_clock_drift() {
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
            "the answer to an older request does not shorten the term"
        );
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!leadership.is_current(), "without a notice of its loss");
        leadership.prolong(Instant::now() + Duration::from_secs(2));
        leadership.lose();
        assert!(!leadership.is_current(), "a lost term stays lost");
    }
}
