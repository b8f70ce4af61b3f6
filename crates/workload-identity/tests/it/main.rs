//! Tests of the crate's interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod documents;
mod rotation;
mod sealing;
mod tokens;

use model::{AllocId, Keyring, SigningKeyId, Timestamp};
use ring::rand::SystemRandom;
use workload_identity::{Grant, KeyEncryptionKeys, Workload, keyring};

pub(crate) const DAY: u64 = 24 * 3_600;
/// 32 bytes of `a`.
pub(crate) const KEY_A: &str = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=";
/// 32 bytes of `b`.
pub(crate) const KEY_B: &str = "6262626262626262626262626262626262626262626262626262626262626262";

pub(crate) fn id(number: u128) -> SigningKeyId {
    SigningKeyId::from_random(number)
}

pub(crate) fn keys() -> KeyEncryptionKeys {
    KeyEncryptionKeys::parse(KEY_A).unwrap()
}

pub(crate) fn day(number: u64) -> Timestamp {
    Timestamp::from_secs(1_700_000_000 + number * DAY)
}

/// Keys that are active from these days, with ids 1, 2, …
pub(crate) fn ring_of(days: &[u64]) -> Keyring {
    let mut all = Keyring::default();
    for (position, from) in days.iter().enumerate() {
        let id = id(position as u128 + 1);
        let random = SystemRandom::new();
        let key = keyring::generate(id, day(*from), day(*from), &keys(), &random).unwrap();
        all = keyring::with(&all, key);
    }
    all
}

pub(crate) fn grant() -> Grant {
    Grant {
        region: "global".to_owned(),
        namespace: "default".to_owned(),
        job_id: "web".to_owned(),
        group: "front".to_owned(),
        workload: Workload::Task("server".to_owned()),
        identity: "vault_default".to_owned(),
        alloc_id: AllocId::from_random(7),
        audience: vec!["vault.io".to_owned()],
        ttl: std::time::Duration::from_secs(3_600),
        vault_role: None,
        vault_namespace: None,
        consul_namespace: None,
    }
}
