//! The loop that maintains the signing keys: the first key, rotation by age, removal of retired keys,
//! and replaced key-encryption keys.
//!
//! Every gateway with a key file runs it. A write compares the keyring as it was read, so of two gateways
//! one makes the next key. The first run that finds the cluster's key in the file makes the gateway ready.

use std::sync::Arc;
use std::time::Duration;

use admission::cluster::keyring as decision;
use gateway_core::{Error, Step};
use model::SigningKeyId;
use rand::RngExt as _;
use service_kit::Backoff;
use state::Snapshot;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::gateway_keys::Keyring;

/// The interval of looks. Keys change by days; a replaced key file counts within it.
const INTERVAL: Duration = Duration::from_secs(600);
/// Shortest and longest pause after a failure.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// Longest pause of a gateway that is not ready, so that a corrected file counts soon.
const UNREADY_PAUSE: Duration = Duration::from_secs(10);

/// Runs until stopped.
pub async fn run(keyring: Arc<Keyring>, stop: CancellationToken) {
    if !keyring.signer.has_file() {
        tokio::select! {
            () = stop.cancelled() => return,
            () = warn_of_missing_file(&keyring) => {}
        }
        stop.cancelled().await;
        return;
    }
    let mut rng = keyring.core.ids.rng();
    let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
    loop {
        let looked = tokio::select! {
            () = stop.cancelled() => return,
            looked = look(&keyring) => looked,
        };
        let pause = match looked {
            Ok(()) => {
                backoff.reset();
                // Gateways that start together do not look together.
                INTERVAL.mul_f64(rng.random_range(0.5..=1.0))
            }
            Err(failure) => {
                keyring.metrics.keyring_failures.inc();
                let error = failure.message();
                let longest = if *keyring.opened.borrow() {
                    error!(
                        error,
                        "cannot maintain the keys that sign identity tokens; retrying"
                    );
                    BACKOFF.1
                } else {
                    error!(error, "not ready; reading `keyring_key_file` again");
                    UNREADY_PAUSE
                };
                backoff.next(&mut rng).min(longest)
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// A gateway without a key file works, but for requests on variables and identities: among gateways with one,
/// only some of these requests fail.
async fn warn_of_missing_file(keyring: &Keyring) {
    let has_keys = loop {
        match keyring.core.snapshot(true).await {
            Ok(snapshot) => break snapshot.keyring().is_some(),
            Err(_) => tokio::time::sleep(UNREADY_PAUSE).await,
        }
    };
    if has_keys {
        warn!(
            "`keyring_key_file` is not set, although the cluster has keys: requests on variables and identities \
             fail at this gateway; set it to the file of the other gateways"
        );
    }
}

async fn look(keyring: &Keyring) -> Result<(), Error> {
    let keys = keyring.signer.read_file().await?;
    let core = &keyring.core;
    let id = SigningKeyId::from_random(core.ids.next_u128());
    let now = core.now();
    let decide = |snapshot: &Snapshot| {
        let write = decision::maintain(snapshot, &keys, (id, now), keyring.signer.random())?;
        Ok(match write {
            None => Step::IfFresh(false),
            Some(write) => Step::Commit {
                writes: vec![write],
                answer: Box::new(|_| true),
            },
        })
    };
    let what = || "the signing keys".to_owned();
    let executed = core.execute(what, decide).await;
    // A store that accepts no writes keeps no gateway from being ready.
    let snapshot = core.snapshot(true).await?;
    keyring.signer.check(&snapshot, &keys, now)?;
    keyring.opened.send_replace(true);
    if executed? {
        info!("the keys that sign identity tokens have changed");
    }
    let resealed = keyring.variables().reseal(&keys).await?;
    if resealed > 0 {
        info!(resealed, "variables are sealed with the newest key");
    }
    Ok(())
}
