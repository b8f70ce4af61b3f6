//! The keys that sign identity tokens: their list and their messages, without the keys themselves.

use model::{SigningKey, Timestamp};
use proto::v1;
use state::Snapshot;
use workload_identity::ALGORITHM;
use workload_identity::keyring::{self, KeyState};

/// Returns every key, oldest first.
pub fn signing_keys(snapshot: &Snapshot, now: Timestamp) -> Vec<v1::SigningKey> {
    let ring = snapshot.keyring();
    let states = ring.map(|ring| keyring::states(&ring.value, now));
    let shown = states.into_iter().flatten();
    shown.map(|(key, state)| signing_key(key, state)).collect()
}

/// Returns one key.
pub fn signing_key(key: &SigningKey, state: KeyState) -> v1::SigningKey {
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
