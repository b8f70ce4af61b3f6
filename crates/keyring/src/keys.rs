//! The signing keys of a snapshot: their published document, their list, and what their maintenance writes.

use admission::cluster::keyring::{self as decision, KeyringRefusal};
use model::{Keyring, SigningKey, SigningKeyId, Timestamp};
use proto::v1;
use ring::rand::SecureRandom;
use state::Snapshot;
use workload_identity::keyring::{self, KeyState};
use workload_identity::{ALGORITHM, Jwks, KeyEncryptionKeys};

/// Returns the document of the published keys; `None`: there are none yet.
pub fn published(snapshot: &Snapshot) -> Option<String> {
    let ring = snapshot.keyring()?;
    Some(Jwks::of(&ring.value).to_json())
}

/// Returns every key, oldest first.
pub fn list(snapshot: &Snapshot, now: Timestamp) -> Vec<v1::SigningKey> {
    let ring = snapshot.keyring();
    let states = ring.map(|ring| keyring::states(&ring.value, now));
    let shown = states.into_iter().flatten();
    shown.map(|(key, state)| show(key, state)).collect()
}

pub(crate) fn show(key: &SigningKey, state: KeyState) -> v1::SigningKey {
    let (state, until) = match state {
        KeyState::Next => ("next", Timestamp::NEVER),
        KeyState::Active => ("active", Timestamp::NEVER),
        KeyState::Retired { published_until } => ("retired", published_until),
    };
    v1::SigningKey {
        id: key.id.to_string(),
        state: state.to_owned(),
        algorithm: ALGORITHM.to_owned(),
        created_at_ns: key.created_at.0,
        active_from_ns: key.active_from.0,
        published_until_ns: until.0,
    }
}

/// Returns the writes of what is due, if something is.
pub(crate) fn maintain(
    snapshot: &Snapshot,
    keys: &KeyEncryptionKeys,
    (id, now): (SigningKeyId, Timestamp),
    random: &dyn SecureRandom,
) -> Result<Option<state::Write>, KeyringRefusal> {
    let empty = Keyring::default();
    let ring = snapshot.keyring().map_or(&empty, |ring| &ring.value);
    let due = keyring::due(ring, now, keys.current());
    // A gateway with other key-encryption keys than the rest changes nothing.
    for key in &ring.keys {
        keyring::open(key, keys, random)?;
    }
    let changed = keyring::apply(ring, &due, (id, now), keys, random)?;
    Ok((changed != *ring).then(|| decision::replace(snapshot, changed)))
}
