//! Rotation: the active key, published keys, and the changes that are due.
//!
//! A key is active from its `active_from` until that of the next key. Then it stays published until the
//! last token that it may have signed has expired. So nothing is written when a key becomes active, and
//! all gateways switch at the same time.

use std::time::Duration;

use model::{Keyring, SigningKey, SigningKeyId, Timestamp, WorkloadIdentity};
use ring::rand::SecureRandom;

use crate::sealing::{KeyEncryptionKeys, KeyError};
use crate::signing::{self, SigningPair};

/// The age of the active key at which the next one takes over. Source: Nomad's default.
pub const ROTATE_AFTER: Duration = Duration::from_secs(30 * DAY);
/// The time for which the next key is published before it signs: verifiers cache the published keys.
pub const PUBLISHED_AHEAD: Duration = Duration::from_secs(DAY);
/// Keys in the keyring. Rotation by age needs three; the rest are an operator's.
pub const KEYS_MAX: usize = 16;
/// Difference between the clocks of gateways and of verifiers.
const CLOCK_MARGIN: Duration = Duration::from_secs(3_600);
const DAY: u64 = 24 * 3_600;

/// The state of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// Published ahead of its use.
    Next,
    Active,
    /// Signs no more; removed at this time.
    Retired {
        published_until: Timestamp,
    },
}

/// Returns the position of the active key; `None`: there are no keys.
///
/// A key that begins in the future of this gateway's clock is active if it is the only one.
fn active_position(keyring: &Keyring, now: Timestamp) -> Option<usize> {
    let begun = keyring.keys.iter().rposition(|key| key.active_from <= now);
    begun.or((!keyring.keys.is_empty()).then_some(0))
}

/// Returns the key that signs at `now`; `None`: there are no keys.
pub fn active(keyring: &Keyring, now: Timestamp) -> Option<&SigningKey> {
    active_position(keyring, now).map(|position| &keyring.keys[position])
}

/// Refuses key-encryption keys without the one that seals the active key at `now`: what they seal, other
/// gateways cannot open.
///
/// # Errors
/// [`KeyError::Unknown`].
pub fn check(keyring: &Keyring, keys: &KeyEncryptionKeys, now: Timestamp) -> Result<(), KeyError> {
    match active(keyring, now) {
        Some(key) if !keys.knows(&key.private_key.sealed_with) => Err(KeyError::Unknown {
            id: key.id,
            sealed_with: key.private_key.sealed_with.clone(),
        }),
        _ => Ok(()),
    }
}

/// Returns each key with its state, oldest first.
pub fn states(keyring: &Keyring, now: Timestamp) -> Vec<(&SigningKey, KeyState)> {
    let Some(active) = active_position(keyring, now) else {
        return Vec::new();
    };
    let state = |position: usize| match position.cmp(&active) {
        std::cmp::Ordering::Greater => KeyState::Next,
        std::cmp::Ordering::Equal => KeyState::Active,
        std::cmp::Ordering::Less => {
            let retired = keyring.keys[position + 1].active_from;
            KeyState::Retired {
                published_until: retired.plus(WorkloadIdentity::TTL_MAX).plus(CLOCK_MARGIN),
            }
        }
    };
    let keys = keyring.keys.iter().enumerate();
    keys.map(|(position, key)| (key, state(position))).collect()
}

/// The changes that are due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// A new key is due; it is active from this time.
    pub create: Option<Timestamp>,
    /// Keys whose last tokens have expired.
    pub remove: Vec<SigningKeyId>,
    /// Keys that are sealed with an outdated key-encryption key.
    pub reseal: Vec<SigningKeyId>,
}

impl Due {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the changes that are due at `now`; `current` names the key-encryption key that seals.
pub fn due(keyring: &Keyring, now: Timestamp, current: &str) -> Due {
    let states = states(keyring, now);
    let Some(newest) = keyring.keys.last() else {
        return Due {
            create: Some(now),
            ..Due::default()
        };
    };
    let ends = newest.active_from.plus(ROTATE_AFTER);
    let is_due = now.plus(PUBLISHED_AHEAD) >= ends;
    let has_ended = |state: &KeyState| matches!(state, KeyState::Retired { published_until } if *published_until <= now);
    let (ended, kept): (Vec<_>, Vec<_>) =
        states.into_iter().partition(|(_, state)| has_ended(state));
    let outdated = kept
        .into_iter()
        .filter(|(key, _)| key.private_key.sealed_with != current);
    Due {
        // A keyring that was not looked after for long rotates ahead of use, too.
        create: is_due.then(|| ends.max(now.plus(PUBLISHED_AHEAD))),
        remove: ended.into_iter().map(|(key, _)| key.id).collect(),
        reseal: outdated.map(|(key, _)| key.id).collect(),
    }
}

/// Makes a signing key.
///
/// # Errors
/// There is no randomness.
pub fn generate(
    id: SigningKeyId,
    now: Timestamp,
    active_from: Timestamp,
    keys: &KeyEncryptionKeys,
    random: &dyn SecureRandom,
) -> Result<SigningKey, KeyError> {
    let private_key = signing::generate(random)?;
    let pair = SigningPair::read(id, &private_key, random)?;
    Ok(SigningKey {
        id,
        public_key: pair.public_key(),
        private_key: keys.seal(id, &private_key, random)?,
        created_at: now,
        active_from,
    })
}

/// Opens a signing key.
///
/// # Errors
/// It is sealed with another key-encryption key, or damaged.
pub fn open(
    key: &SigningKey,
    keys: &KeyEncryptionKeys,
    random: &dyn SecureRandom,
) -> Result<SigningPair, KeyError> {
    let private_key = keys.open(key.id, &key.private_key)?;
    Ok(SigningPair::read(key.id, &private_key, random)?)
}

/// Applies what is due; `id` is that of a new key.
///
/// # Errors
/// A key to reseal does not open, or there is no randomness.
pub fn apply(
    keyring: &Keyring,
    due: &Due,
    (id, now): (SigningKeyId, Timestamp),
    keys: &KeyEncryptionKeys,
    random: &dyn SecureRandom,
) -> Result<Keyring, KeyError> {
    let mut changed = keyring.clone();
    changed.keys.retain(|key| !due.remove.contains(&key.id));
    for key in &mut changed.keys {
        if due.reseal.contains(&key.id) {
            let private_key = keys.open(key.id, &key.private_key)?;
            key.private_key = keys.seal(key.id, &private_key, random)?;
        }
    }
    if let Some(active_from) = due.create.filter(|_| changed.keys.len() < KEYS_MAX) {
        changed = with(&changed, generate(id, now, active_from, keys, random)?);
    }
    Ok(changed)
}

/// Returns the keyring with one more key.
pub fn with(keyring: &Keyring, key: SigningKey) -> Keyring {
    let mut changed = keyring.clone();
    changed.keys.push(key);
    changed.keys.sort_by_key(|key| (key.active_from, key.id));
    changed
}
