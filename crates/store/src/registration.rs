//! Registration of a process: a key bound to a lease, which the process renews.
//!
//! Only operators' tools read registrations. A process works without one, so a failure is retried and
//! costs nothing else.

use std::time::Duration;

use model::{ProcessInfo, ProcessKey};
use state::Key;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::client::Client;
use crate::election::lease::Lease;
use crate::error::Error;
use crate::retry::Retry;
use crate::txn::Txn;
use crate::writer::{Commit, send};

/// The lease time: a killed process is listed for this long.
const TTL: Duration = Duration::from_secs(30);
/// Renewals within the lease's time: one may fail.
const RENEWALS: u32 = 3;
/// Timeout of the end; after that the lease expires by itself.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Keeps `process` registered until `ended`, and then ends its registration.
pub async fn keep_registered(
    client: Client,
    process: ProcessKey,
    info: ProcessInfo,
    ended: CancellationToken,
) {
    let key = Key::Process(process);
    let mut retry = Retry::default();
    loop {
        let granted = tokio::select! {
            () = ended.cancelled() => return,
            granted = Lease::grant(&client, TTL) => granted,
        };
        let failed = match granted {
            // A registration may be stored before its answer comes, so every lease is given back.
            Ok(lease) => tokio::select! {
                () = ended.cancelled() => return end(&client, lease).await,
                failed = hold(&client, &key, &info, lease, &mut retry) => failed,
            },
            Err(error) => Some(error),
        };
        match failed {
            Some(error) => debug!(%error, "cannot register the process"),
            None => info!("the registration has expired: registering again"),
        }
        tokio::select! {
            () = ended.cancelled() => return,
            () = retry.wait() => {}
        }
    }
}

/// Registers the process and renews its lease until that expires; returns the error of a registration
/// that failed.
async fn hold(
    client: &Client,
    key: &Key,
    info: &ProcessInfo,
    lease: Lease,
    retry: &mut Retry,
) -> Option<Error> {
    if let Err(error) = register(client, key, info, lease).await {
        return Some(error);
    }
    debug!(?key, "process registered");
    retry.reset();
    renew(client, lease).await;
    None
}

/// Stores the registration under a lease. It replaces that of an earlier process at the address.
async fn register(
    client: &Client,
    key: &Key,
    info: &ProcessInfo,
    lease: Lease,
) -> Result<(), Error> {
    loop {
        let earlier = client.get(key).await?;
        let mod_revision = earlier.map_or(0, |stored| stored.mod_revision);
        let mut txn = Txn::new(client.keyspace.clone(), client.limits);
        txn.put_leased(key, info, lease.id, mod_revision)
            .expect("one small key fits in an empty transaction");
        let sending = send(client, "register a process", client.request_timeout, &txn);
        if let Commit::Done { .. } = sending.await? {
            return Ok(());
        }
    }
}

/// Renews the lease until etcd does not know it any more, or it has not been renewed in time.
async fn renew(client: &Client, lease: Lease) {
    let interval = lease.ttl / RENEWALS;
    let mut deadline = Instant::now() + lease.ttl;
    while Instant::now() < deadline {
        sleep(interval).await;
        let asked = Instant::now();
        match lease.open(client, asked + interval).await {
            Ok(Some(_)) => deadline = asked + lease.ttl,
            Ok(None) => return,
            Err(error) => debug!(%error, "cannot renew the registration"),
        }
    }
}

async fn end(client: &Client, lease: Lease) {
    match timeout(END_TIMEOUT, lease.revoke(client)).await {
        Ok(Ok(())) => {}
        // It expires by itself.
        Ok(Err(error)) => debug!(%error, "cannot end the registration"),
        Err(_) => debug!("cannot end the registration: no answer"),
    }
}

#[cfg(test)]
mod tests {
    use store_test_kit::TestStore;

    use super::*;
    use crate::client::ClientOptions;

    async fn connected() -> (TestStore, Client) {
        let store = TestStore::start().await;
        let endpoints = [store.endpoint.clone()];
        let client = Client::connect(&endpoints, ClientOptions::default()).await;
        (store, client.unwrap())
    }

    fn process() -> ProcessKey {
        ProcessKey {
            service: "scheduler-worker".to_owned(),
            address: "http://10.0.0.7:4648".to_owned(),
        }
    }

    fn info(version: &str) -> ProcessInfo {
        ProcessInfo {
            version: version.to_owned(),
        }
    }

    async fn stored(client: &Client) -> Option<state::Entity> {
        let stored = client.get(&Key::Process(process())).await.unwrap();
        stored.map(|stored| stored.entity)
    }

    async fn until_stored(client: &Client, expected: Option<ProcessInfo>) {
        let expected = expected.map(state::Entity::Process);
        test_kit::wait_for("the registration", Duration::from_secs(30), async || {
            (stored(client).await == expected).then_some(())
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_process_is_registered_until_it_ends() {
        let (_store, client) = connected().await;
        let ended = CancellationToken::new();
        let keeping = keep_registered(client.clone(), process(), info("1"), ended.clone());
        let keeping = tokio::spawn(keeping);
        until_stored(&client, Some(info("1"))).await;
        ended.cancel();
        keeping.await.unwrap();
        assert_eq!(stored(&client).await, None, "without waiting for the lease");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_next_process_at_the_address_takes_over_and_outlives_the_last_one() {
        let (_store, client) = connected().await;
        let key = Key::Process(process());
        let mut leases = Vec::new();
        for version in ["1", "2"] {
            let lease = Lease::grant(&client, TTL).await.unwrap();
            register(&client, &key, &info(version), lease)
                .await
                .unwrap();
            leases.push(lease);
        }
        let [first, second] = leases[..] else {
            unreachable!("two leases")
        };
        end(&client, first).await;
        until_stored(&client, Some(info("2"))).await;
        end(&client, second).await;
        assert_eq!(stored(&client).await, None);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_process_whose_lease_is_gone_registers_again() {
        let (_store, client) = connected().await;
        let lease = Lease::grant(&client, TTL).await.unwrap();
        let short = Lease {
            ttl: Duration::from_millis(300),
            ..lease
        };
        end(&client, lease).await;
        let renewed = timeout(Duration::from_secs(30), renew(&client, short));
        renewed.await.expect("etcd does not know the lease");
    }
}
