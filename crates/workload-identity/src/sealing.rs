//! Encryption of private keys for the store: AES-256-GCM with a key-encryption key from a file of the
//! gateways.
//!
//! The id of the signing key is authenticated with the ciphertext, so ciphertexts cannot be swapped.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use model::{SealedKey, SigningKeyId};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use ring::rand::SecureRandom;

use crate::signing::SigningError;
use crate::text;

/// Bytes of a key-encryption key.
pub const KEY_BYTES: usize = 32;
/// Key-encryption keys in one file: the new one and the old ones of a replacement.
pub const KEYS_MAX: usize = 8;
/// Bytes of the hash that name a key.
const NAME_BYTES: usize = 8;

/// A key-encryption key cannot be used. No variant shows key material.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("it is empty: write a key into it with `openssl rand -base64 32`")]
    Empty,
    #[error(
        "line {line} is no key: want 32 bytes as base64 or as 64 hexadecimal digits, as from `openssl \
         rand -base64 32`"
    )]
    Line { line: usize },
    #[error("it has more than {KEYS_MAX} keys: remove those that seal no signing key any more")]
    TooMany,
    #[error(
        "it does not have the key {sealed_with} that signing key {id} is sealed with: give every gateway \
         the same keys, and keep an old key until `kafila operator root keyring list` shows no more \
         signing keys of it"
    )]
    Unknown {
        id: SigningKeyId,
        sealed_with: String,
    },
    #[error("signing key {id} does not open: its stored form is damaged")]
    Damaged { id: SigningKeyId },
    #[error(transparent)]
    Signing(#[from] SigningError),
}

struct Named {
    name: String,
    key: LessSafeKey,
}

/// The key-encryption keys of a gateway: the first seals, all open. `Debug` shows names alone.
pub struct KeyEncryptionKeys {
    keys: Vec<Named>,
}

impl fmt::Debug for KeyEncryptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.keys.iter().map(|key| &key.name);
        f.debug_list().entries(names).finish()
    }
}

impl KeyEncryptionKeys {
    /// Reads the text of a key file: one key a line, the sealing one first. Lines that begin with `#`
    /// are comments.
    ///
    /// # Errors
    /// There is no key, a line is none, or there are too many.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut keys = Vec::new();
        for (position, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bytes = read(line).ok_or(KeyError::Line { line: position + 1 })?;
            if keys.len() == KEYS_MAX {
                return Err(KeyError::TooMany);
            }
            let unbound = UnboundKey::new(&AES_256_GCM, &bytes);
            let unbound = unbound.map_err(|_| KeyError::Line { line: position + 1 })?;
            keys.push(Named {
                name: name_of(&bytes),
                key: LessSafeKey::new(unbound),
            });
        }
        match keys.is_empty() {
            true => Err(KeyError::Empty),
            false => Ok(Self { keys }),
        }
    }

    /// Returns the name of the key that seals.
    pub fn current(&self) -> &str {
        &self.keys[0].name
    }

    pub(crate) fn seal(
        &self,
        id: SigningKeyId,
        private_key: &[u8],
        random: &dyn SecureRandom,
    ) -> Result<SealedKey, SigningError> {
        let Named { name, key } = &self.keys[0];
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce).map_err(|_| SigningError::Random)?;
        let mut sealed = private_key.to_vec();
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(id.0.as_bytes()),
            &mut sealed,
        )
        .map_err(|_| SigningError::Key)?;
        let bytes = [nonce.as_slice(), &sealed].concat();
        Ok(SealedKey {
            sealed_with: name.clone(),
            ciphertext: text::encode(bytes),
        })
    }

    pub(crate) fn open(&self, id: SigningKeyId, sealed: &SealedKey) -> Result<Vec<u8>, KeyError> {
        let sealed_with = &sealed.sealed_with;
        let known = self.keys.iter().find(|key| key.name == *sealed_with);
        let known = known.ok_or_else(|| KeyError::Unknown {
            id,
            sealed_with: sealed_with.clone(),
        })?;
        let damaged = || KeyError::Damaged { id };
        let bytes = text::decode(&sealed.ciphertext).ok_or_else(damaged)?;
        let (nonce, ciphertext) = bytes.split_at_checked(NONCE_LEN).ok_or_else(damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
        let mut opened = ciphertext.to_vec();
        let aad = Aad::from(id.0.as_bytes());
        let opened = known.key.open_in_place(nonce, aad, &mut opened);
        Ok(opened.map_err(|_| damaged())?.to_vec())
    }
}

fn read(line: &str) -> Option<[u8; KEY_BYTES]> {
    let bytes = if line.len() == 2 * KEY_BYTES {
        text::from_hex(line)
    } else {
        let padded = STANDARD.decode(line).ok();
        padded
            .or_else(|| STANDARD_NO_PAD.decode(line).ok())
            .or_else(|| text::decode(line))
    };
    bytes?.try_into().ok()
}

/// The start of the hash of a key. It does not reveal the key, which is random.
fn name_of(key: &[u8]) -> String {
    let named = [b"kafila key-encryption key ".as_slice(), key].concat();
    text::hex(&digest(&SHA256, &named).as_ref()[..NAME_BYTES])
}
