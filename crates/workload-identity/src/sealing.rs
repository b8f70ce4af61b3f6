//! Encryption for the store, of private keys and of the items of variables: AES-256-GCM with a
//! key-encryption key from a file of the gateways.
//!
//! The name of what is sealed is authenticated with the ciphertext, so ciphertexts cannot be swapped.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use model::{SealedText, SigningKeyId, VariableKey};
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
        "line {line} is not a valid key: want 32 bytes as base64 or as 64 hexadecimal digits, as from `openssl \
         rand -base64 32`"
    )]
    Line { line: usize },
    #[error("it has more than {KEYS_MAX} keys: remove those that seal nothing any more")]
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
    #[error(
        "it does not have the key {sealed_with} that variable {variable} is sealed with: give every \
         gateway the same keys, and keep an old key until `kafila operator root keyring list` shows no \
         more variables of it"
    )]
    UnknownOfVariable {
        variable: VariableKey,
        sealed_with: String,
    },
    #[error("variable {variable} does not open: its stored form is damaged")]
    DamagedVariable { variable: VariableKey },
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

    /// Returns whether the key with this name is among them.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    pub(crate) fn seal(
        &self,
        id: SigningKeyId,
        private_key: &[u8],
        random: &dyn SecureRandom,
    ) -> Result<SealedText, SigningError> {
        self.seal_as(id.0.as_bytes(), private_key, random)
    }

    pub(crate) fn open(&self, id: SigningKeyId, sealed: &SealedText) -> Result<Vec<u8>, KeyError> {
        self.open_as(id.0.as_bytes(), sealed)
            .map_err(|failure| match failure {
                OpenFailure::Unknown => KeyError::Unknown {
                    id,
                    sealed_with: sealed.sealed_with.clone(),
                },
                OpenFailure::Damaged => KeyError::Damaged { id },
            })
    }

    /// Seals a text with its name.
    pub(crate) fn seal_as(
        &self,
        name: &[u8],
        plaintext: &[u8],
        random: &dyn SecureRandom,
    ) -> Result<SealedText, SigningError> {
        let Named {
            name: key_name,
            key,
        } = &self.keys[0];
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce).map_err(|_| SigningError::Random)?;
        let mut sealed = plaintext.to_vec();
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(name),
            &mut sealed,
        )
        .map_err(|_| SigningError::Key)?;
        let bytes = [nonce.as_slice(), &sealed].concat();
        Ok(SealedText {
            sealed_with: key_name.clone(),
            ciphertext: text::encode(bytes),
        })
    }

    /// Opens a text that was sealed with this name.
    pub(crate) fn open_as(&self, name: &[u8], sealed: &SealedText) -> Result<Vec<u8>, OpenFailure> {
        let known = self.keys.iter().find(|key| key.name == sealed.sealed_with);
        let known = known.ok_or(OpenFailure::Unknown)?;
        let damaged = || OpenFailure::Damaged;
        let bytes = text::decode(&sealed.ciphertext).ok_or_else(damaged)?;
        let (nonce, ciphertext) = bytes.split_at_checked(NONCE_LEN).ok_or_else(damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
        let mut opened = ciphertext.to_vec();
        let opened = known.key.open_in_place(nonce, Aad::from(name), &mut opened);
        Ok(opened.map_err(|_| damaged())?.to_vec())
    }
}

/// The reason why a sealed text does not open.
pub(crate) enum OpenFailure {
    /// The key that sealed it is not in the file.
    Unknown,
    Damaged,
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
