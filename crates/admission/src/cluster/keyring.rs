//! The keys that sign identity tokens: rotated and removed by operators, replaced by gateways.

use model::refusal::{Kind, Refusal};
use model::{Keyring, SigningKey, SigningKeyId, Timestamp};
use ring::rand::SecureRandom;
use state::{Entity, Key, Snapshot, Write};
use workload_identity::keyring::{self, KEYS_MAX};
use workload_identity::{KeyEncryptionKeys, KeyError};

/// The reason why the keys stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyringRefusal {
    #[error(
        "signing key {0} is active: make another one with `kafila operator root keyring rotate`, then \
         remove this one"
    )]
    Active(SigningKeyId),
    #[error("signing key {0} does not exist: `kafila operator root keyring list` shows all")]
    Unknown(SigningKeyId),
    #[error(
        "there are {KEYS_MAX} signing keys already: remove a retired one with `kafila operator root \
         keyring remove`"
    )]
    TooMany,
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Refusal for KeyringRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Active(_) | Self::TooMany | Self::Key(_) => Kind::Precondition,
            Self::Unknown(_) => Kind::NotFound,
        }
    }
}

/// Returns the write of a changed keyring.
pub fn replace(snapshot: &Snapshot, keyring: Keyring) -> Write {
    let modify_index = snapshot.keyring().map_or(0, |stored| stored.modify_index);
    Write::put(
        Key::Keyring,
        modify_index,
        Entity::Keyring(Box::new(keyring)),
    )
}

/// Creates, removes and reseals signing keys that are due for it. Returns `None` if no key is due.
///
/// # Errors
/// `keys` lacks a key that seals a signing key, or a new one cannot be made.
pub fn maintain(
    snapshot: &Snapshot,
    keys: &KeyEncryptionKeys,
    (id, now): (SigningKeyId, Timestamp),
    random: &dyn SecureRandom,
) -> Result<Option<Write>, KeyringRefusal> {
    let empty = Keyring::default();
    let ring = snapshot.keyring().map_or(&empty, |ring| &ring.value);
    let due = keyring::due(ring, now, keys.current());
    // A gateway with other key-encryption keys than the rest changes nothing.
    for key in &ring.keys {
        keyring::open(key, keys, random)?;
    }
    let changed = keyring::apply(ring, &due, (id, now), keys, random)?;
    Ok((changed != *ring).then(|| replace(snapshot, changed)))
}

/// Decides on one more key.
///
/// # Errors
/// There are too many.
pub fn rotate(snapshot: &Snapshot, key: &SigningKey) -> Result<Write, KeyringRefusal> {
    let stored = snapshot.keyring().map(|stored| stored.value.clone());
    let stored = stored.unwrap_or_default();
    if stored.keys.len() >= KEYS_MAX {
        return Err(KeyringRefusal::TooMany);
    }
    Ok(replace(snapshot, keyring::with(&stored, key.clone())))
}

/// Decides on the removal of a key.
///
/// # Errors
/// It is active at `now`, or there is no such key.
pub fn remove(
    snapshot: &Snapshot,
    id: SigningKeyId,
    now: Timestamp,
) -> Result<Write, KeyringRefusal> {
    let stored = snapshot.keyring().ok_or(KeyringRefusal::Unknown(id))?;
    let active = keyring::active(&stored.value, now);
    if active.is_some_and(|active| active.id == id) {
        return Err(KeyringRefusal::Active(id));
    }
    let mut changed = stored.value.clone();
    changed.keys.retain(|key| key.id != id);
    if changed == stored.value {
        return Err(KeyringRefusal::Unknown(id));
    }
    Ok(replace(snapshot, changed))
}

#[cfg(test)]
mod tests {
    use model::SealedText;
    use test_kit::stored::Stored;

    use super::*;

    fn key(number: u128, from: u64) -> SigningKey {
        SigningKey {
            id: SigningKeyId::from_random(number),
            public_key: String::new(),
            private_key: SealedText {
                sealed_with: String::new(),
                ciphertext: String::new(),
            },
            created_at: Timestamp::from_secs(from),
            active_from: Timestamp::from_secs(from),
        }
    }

    fn stored(keys: Vec<SigningKey>) -> Stored {
        let mut stored = Stored::default();
        let keyring = Entity::Keyring(Box::new(Keyring { keys }));
        stored.put(Key::Keyring, keyring);
        stored
    }

    #[test]
    fn the_first_key_is_created_only_if_there_is_none() {
        let write = rotate(&Stored::default().snapshot(), &key(1, 5)).unwrap();
        assert!(matches!(write, Write::Create { .. }), "{write:?}");
        let write = rotate(&stored(vec![key(1, 5)]).snapshot(), &key(2, 6)).unwrap();
        let Some(Entity::Keyring(changed)) = write.entity() else {
            panic!("{write:?}");
        };
        assert_eq!(changed.keys, [key(1, 5), key(2, 6)]);
        assert_eq!(write.expected_index(), 1);
    }

    #[test]
    fn the_active_key_is_not_removed() {
        let stored = stored(vec![key(1, 5), key(2, 6), key(3, 9)]);
        let snapshot = stored.snapshot();
        let now = Timestamp::from_secs(7);
        let remove = |number| remove(&snapshot, SigningKeyId::from_random(number), now);
        assert_eq!(remove(2).unwrap_err(), KeyringRefusal::Active(key(2, 0).id));
        assert_eq!(
            remove(4).unwrap_err(),
            KeyringRefusal::Unknown(key(4, 0).id)
        );
        for (number, left) in [(1, [key(2, 6), key(3, 9)]), (3, [key(1, 5), key(2, 6)])] {
            let write = remove(number).unwrap();
            let Some(Entity::Keyring(changed)) = write.entity() else {
                panic!("{write:?}");
            };
            assert_eq!(changed.keys, left);
        }
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let all = (1..=16).map(|number| key(number, 5)).collect();
        let refused = rotate(&stored(all).snapshot(), &key(17, 6)).unwrap_err();
        assert_eq!(refused, KeyringRefusal::TooMany);
    }
}
