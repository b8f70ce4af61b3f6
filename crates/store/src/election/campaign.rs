//! Campaigning for a term, and resigning from it.

use std::time::Duration;

use etcd_client::{EventType, GetOptions, WatchOptions};
use state::{Key, Write};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::StreamExt as _;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, info, warn};

use crate::client::header_revision;
use crate::election::candidate::Election;
use crate::election::fence::Fence;
use crate::election::leadership::Leadership;
use crate::election::lease::{Lease, Renewals};
use crate::error::{Cause, Error};
use crate::retry::Retry;
use crate::revision;
use crate::txn::Txn;
use crate::writer::{Commit, send};

/// Limit of one wait for the deletion of the leader's key, after which the key is read again: a
/// silently broken watch must not leave a service without a leader.
const WATCH_LIMIT: Duration = Duration::from_secs(10);
/// Timeout of resigning; after that the lease expires by itself.
const RESIGN_TIMEOUT: Duration = Duration::from_secs(1);

/// A won term with its lease and the task that renews it.
pub(super) struct WonTerm {
    pub(super) leadership: Leadership,
    lease: Lease,
    keeper: JoinHandle<()>,
    /// Stops the keeper when dropped, too: a renewed lease without a leader would block the election.
    stop: DropGuard,
}

/// The election key of a current leader.
struct HeldElection {
    /// Identifies the term.
    create_revision: u64,
    /// The store's revision of the read.
    revision: u64,
}

/// Outcome of one attempt.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Attempt {
    Won(Leadership, Renewals),
    /// Another process leads.
    Taken,
}

impl Election {
    /// Waits until this process leads; `None` when drained first. Retries after every error of etcd.
    /// `left_behind` is an ended term of this process whose key may still exist.
    pub(super) async fn campaign(
        &self,
        drain: &CancellationToken,
        left_behind: Option<&Fence>,
    ) -> Option<WonTerm> {
        let mut retry = Retry::default();
        loop {
            let won = tokio::select! {
                () = drain.cancelled() => return None,
                won = self.try_once(left_behind) => won,
            };
            match won {
                Ok(Some(won)) => return Some(won),
                Ok(None) => retry.reset(),
                Err(error) => {
                    warn!(
                        service = self.options.service,
                        error = error.chain(),
                        "not a candidate for leader; retrying"
                    );
                    tokio::select! {
                        () = drain.cancelled() => return None,
                        () = retry.wait() => {}
                    }
                }
            }
        }
    }

    /// Makes one attempt. While another process leads, waits for the end of its term.
    async fn try_once(&self, left_behind: Option<&Fence>) -> Result<Option<WonTerm>, Error> {
        match (self.taken().await?, left_behind) {
            // The key is this process's own and stale. An election of etcd itself may have extended
            // its lease, so waiting for its expiry would only prolong the time without a leader.
            (Some(taken), Some(own)) if taken.create_revision == own.create_revision => {
                self.delete_key(own).await?;
            }
            (Some(taken), _) => self.wait_until_free(taken.revision).await?,
            (None, _) => {}
        }
        let lease = Lease::grant(&self.client, self.options.ttl).await?;
        match self.claim(lease).await {
            Ok(Attempt::Won(leadership, renewals)) => {
                Ok(self.establish(lease, leadership, renewals).await)
            }
            Ok(Attempt::Taken) => {
                self.give_back(lease).await;
                Ok(None)
            }
            Err(error) => {
                self.give_back(lease).await;
                Err(error)
            }
        }
    }

    /// Returns the current leader's term; `None` without a leader.
    async fn taken(&self) -> Result<Option<HeldElection>, Error> {
        let text = self.client.keyspace.encode(&self.key());
        let options = GetOptions::new().with_keys_only();
        let response = self
            .client
            .range("read an election", &text, options)
            .await?;
        Ok(response.kvs().first().map(|kv| HeldElection {
            create_revision: revision::from_etcd(kv.create_revision()),
            revision: header_revision(&response),
        }))
    }

    async fn claim(&self, lease: Lease) -> Result<Attempt, Error> {
        let key = self.key();
        let mut txn = Txn::new(self.client.keyspace.clone(), self.client.limits);
        txn.put_leased(&key, &self.options.info, lease.id, 0)
            .expect("one small key fits in an empty transaction");
        let timeout = self.client.request_timeout;
        let create_revision = match send(&self.client, "claim an election", timeout, &txn).await {
            Ok(Commit::Done { revision }) => revision,
            Ok(Commit::Conflict(_)) => return Ok(Attempt::Taken),
            Err(error) if error.is_unknown() => match self.owned_by(lease).await? {
                Some(create_revision) => create_revision,
                None => return Err(error),
            },
            Err(error) => return Err(error),
        };
        let fence = Fence {
            service: self.options.service.clone(),
            create_revision,
        };
        // Over slow links most of the lease's time has passed by now. A renewal proves that the lease
        // and the key existed when it was requested.
        let give_up = Instant::now() + self.client.request_timeout;
        let Some(renewals) = lease.open(&self.client, give_up).await? else {
            return Err(Error::WatchEnded {
                reason: "the lease expired during the claim".to_owned(),
            });
        };
        let leadership = Leadership::new(fence, renewals.renewed);
        Ok(Attempt::Won(leadership, renewals))
    }

    /// Returns the create revision of the election key when it is bound to `lease`, which is this
    /// process's own. So a claim without an answer is recognised.
    async fn owned_by(&self, lease: Lease) -> Result<Option<u64>, Error> {
        let text = self.client.keyspace.encode(&self.key());
        let response = self
            .client
            .range("read an election", &text, GetOptions::new())
            .await?;
        let own = response.kvs().first().filter(|kv| kv.lease() == lease.id);
        Ok(own.map(|kv| revision::from_etcd(kv.create_revision())))
    }

    /// Starts renewing the lease, and waits until the replica has reached the revision of the
    /// election; with an older state the leader would miss changes of its predecessor.
    async fn establish(
        &self,
        lease: Lease,
        leadership: Leadership,
        renewals: Renewals,
    ) -> Option<WonTerm> {
        let stop = CancellationToken::new();
        let (client, replica) = (self.client.clone(), self.replica.clone());
        let keeper =
            tokio::spawn(lease.keep(client, replica, leadership.clone(), renewals, stop.clone()));
        let stop = stop.drop_guard();
        let won = WonTerm {
            leadership: leadership.clone(),
            lease,
            keeper,
            stop,
        };
        let from = leadership.fence().create_revision;
        let caught_up = tokio::select! {
            () = leadership.lost().cancelled() => false,
            // Bounded by the term: the replica may take as long as the lease is renewed.
            caught_up = self.replica.wait_for(from, Duration::MAX) => caught_up.is_ok(),
        };
        if !caught_up {
            warn!(
                service = self.options.service,
                "elected, but the replica did not catch up"
            );
            // The key expires with the lease if it could not be deleted.
            let _ = self.resign(won).await;
            return None;
        }
        info!(
            service = self.options.service,
            term = from,
            "elected leader"
        );
        Some(won)
    }

    /// Ends a term: deletes the election key, so that the next leader need not wait for the lease to
    /// expire. Returns the term when the key may still exist.
    pub(super) async fn resign(&self, won: WonTerm) -> Option<Fence> {
        let WonTerm {
            leadership,
            lease,
            keeper,
            stop,
        } = won;
        // No promises from here on; only then may another leader be elected.
        leadership.lose();
        drop(stop);
        let _ = keeper.await;
        let fence = leadership.fence();
        let resigned = tokio::time::timeout(RESIGN_TIMEOUT, self.delete_key(fence)).await;
        let is_known = match resigned {
            Ok(Ok(_)) => {
                info!(service = self.options.service, "resigned");
                true
            }
            Ok(Err(error)) => {
                warn!(
                    service = self.options.service,
                    error = error.chain(),
                    "the next leader may have to wait for the end of the lease"
                );
                false
            }
            Err(_) => {
                warn!(service = self.options.service, "cannot resign: no answer");
                false
            }
        };
        self.give_back(lease).await;
        (!is_known).then(|| fence.clone())
    }

    /// Deletes the election key, if it is still this term's.
    async fn delete_key(&self, fence: &Fence) -> Result<Commit, Error> {
        let mut txn = Txn::new(self.client.keyspace.clone(), self.client.limits);
        // An election key never changes, so its mod revision is its create revision.
        let deletion = Write::Delete {
            key: fence.key(),
            modify_index: fence.create_revision,
        };
        txn.add(&deletion)
            .expect("one small key fits in an empty transaction");
        send(&self.client, "resign", self.client.request_timeout, &txn).await
    }

    async fn give_back(&self, lease: Lease) {
        if let Ok(Err(error)) =
            tokio::time::timeout(RESIGN_TIMEOUT, lease.revoke(&self.client)).await
        {
            // It has expired already, or will expire by itself.
            debug!(%error, "cannot revoke a lease");
        }
    }

    /// Waits until the election key has been deleted after `revision`.
    async fn wait_until_free(&self, revision: u64) -> Result<(), Error> {
        let text = self.client.keyspace.encode(&self.key());
        let options = WatchOptions::new().with_start_revision(revision::to_etcd(revision + 1));
        let mut watch = self.client.watch.clone();
        let opened = watch.watch(text, Some(options));
        let mut stream = match tokio::time::timeout(self.client.request_timeout, opened).await {
            Ok(opened) => opened.map_err(|source| {
                Error::from_etcd("watch an election", self.client.endpoints(), source)
            })?,
            Err(_) => {
                return Err(Error::Unknown {
                    doing: "watch an election",
                    source: None,
                });
            }
        };
        let freed = async {
            while let Some(response) = stream.next().await {
                let response = response.map_err(|error| Error::WatchEnded {
                    reason: Cause::from(error).to_string(),
                })?;
                if response.canceled() {
                    // Compacted, for example: the caller reads the key again.
                    return Ok(());
                }
                if response
                    .events()
                    .iter()
                    .any(|event| event.event_type() == EventType::Delete)
                {
                    return Ok(());
                }
            }
            Err(Error::WatchEnded {
                reason: "the stream was closed".to_owned(),
            })
        };
        // Reaching the limit is no failure.
        tokio::time::timeout(WATCH_LIMIT, freed)
            .await
            .unwrap_or(Ok(()))
    }

    fn key(&self) -> Key {
        Key::Election(self.options.service.clone())
    }
}

#[cfg(test)]
mod tests {
    use model::LeaderInfo;
    use store_test_kit::TestStore;
    use test_kit::proxy::{Mode, Proxy};

    use super::*;
    use crate::client::{Client, ClientOptions};
    use crate::election::ElectionOptions;
    use crate::replica::{Replica, ReplicaOptions};

    const DEADLINE: Duration = Duration::from_millis(400);

    struct Candidate {
        election: Election,
        proxy: Proxy,
        _store: TestStore,
    }

    /// A lease that never expires in a test.
    const LONG: Duration = Duration::from_secs(120);

    async fn candidate(request_timeout: Duration, ttl: Duration) -> Candidate {
        let store = TestStore::start().await;
        let proxy = Proxy::start(store.address).await.unwrap();
        let options = ClientOptions {
            request_timeout,
            ..ClientOptions::default()
        };
        let client = Client::connect(&[proxy.endpoint()], options).await.unwrap();
        let drain = CancellationToken::new();
        let replica = Replica::start(client.clone(), ReplicaOptions::default(), drain);
        let info = LeaderInfo {
            address: "http://a".to_owned(),
            replica: "a".to_owned(),
        };
        let options = ElectionOptions {
            ttl,
            ..ElectionOptions::new("eval-broker", info)
        };
        Candidate {
            election: Election::new(options, client, replica),
            proxy,
            _store: store,
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_term_after_a_failed_resignation_does_not_wait_for_the_old_lease() {
        let Candidate {
            election, proxy, ..
        } = &candidate(DEADLINE, LONG).await;
        let drain = CancellationToken::new();
        let won = election.campaign(&drain, None).await.unwrap();
        let first = won.leadership.fence().clone();
        proxy.set(Mode::Hold);
        let left_behind = election.resign(won).await;
        assert_eq!(left_behind.as_ref(), Some(&first));
        proxy.set(Mode::Open);
        let next = election.campaign(&drain, left_behind.as_ref());
        let next = tokio::time::timeout(Duration::from_secs(30), next).await;
        let next = next.expect("the lease is waited for").unwrap();
        assert!(next.leadership.fence().create_revision > first.create_revision);
        assert_eq!(election.resign(next).await, None);

        // Another process's term is left alone.
        let other = election.campaign(&drain, None).await.unwrap();
        let ours = election.campaign(&drain, left_behind.as_ref());
        let ours = tokio::time::timeout(DEADLINE * 3, ours).await;
        assert!(ours.is_err() && other.leadership.is_current());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_term_is_won_and_kept_over_slow_links() {
        let ttl = Duration::from_secs(6);
        let Candidate {
            election, proxy, ..
        } = &candidate(Duration::from_secs(10), ttl).await;
        // An answer takes longer than half of the remaining time when a renewal is due, and winning
        // takes longer than the lease is relied on.
        proxy.set(Mode::Slow(Duration::from_millis(800)));
        let drain = CancellationToken::new();
        let won = election.campaign(&drain, None).await.unwrap();
        tokio::time::sleep(ttl * 2).await;
        assert!(won.leadership.is_current());
        proxy.set(Mode::Hold);
        tokio::time::sleep(ttl).await;
        assert!(!won.leadership.is_current(), "not current without renewals");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_claim_without_an_answer_is_recognised() {
        let Candidate {
            election, proxy, ..
        } = &candidate(DEADLINE, LONG).await;
        let lease = Lease::grant(&election.client, Duration::from_secs(5))
            .await
            .unwrap();
        proxy.set(Mode::HoldAnswers);
        let healing = async {
            // Longer than the timeout of the claim, shorter than that of the read after it.
            tokio::time::sleep(DEADLINE * 3 / 2).await;
            proxy.set(Mode::Open);
        };
        let (claimed, ()) = tokio::join!(election.claim(lease), healing);
        let Ok(Attempt::Won(leadership, _)) = claimed else {
            panic!("not recognised")
        };
        assert_eq!(
            election.owned_by(lease).await.unwrap(),
            Some(leadership.fence().create_revision)
        );

        let other = Lease::grant(&election.client, Duration::from_secs(5))
            .await
            .unwrap();
        assert!(matches!(election.claim(other).await, Ok(Attempt::Taken)));
        assert_eq!(
            election.owned_by(other).await.unwrap(),
            None,
            "bound to another lease"
        );
    }
}
