//! Keyring: the keys that sign the identity tokens of tasks.
//!
//! Private keys are sealed with a key-encryption key that only gateways have. The crate
//! `workload-identity` generates, seals and opens them, and decides which key is active.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::SigningKeyId;
use crate::time::Timestamp;

/// All signing keys: the value of `keyring/workload-identity`.
///
/// Shape: ordered by `active_from`, then by id; ids are distinct.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyring {
    pub keys: Vec<SigningKey>,
}

/// A key pair of ECDSA over P-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningKey {
    /// `kid` in the header of its tokens.
    pub id: SigningKeyId,
    /// The uncompressed point (65 bytes: 4, x, y), as base64url without padding.
    pub public_key: String,
    pub private_key: SealedText,
    pub created_at: Timestamp,
    /// The time from which it signs, until that of the next key.
    pub active_from: Timestamp,
}

/// An encrypted text: a private key, or the items of a variable.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedText {
    /// Names the key-encryption key: a part of its hash.
    pub sealed_with: String,
    /// Nonce (12 bytes), ciphertext and tag (16 bytes) of AES-256-GCM, as base64url without padding.
    pub ciphertext: String,
}

/// Leaves out the ciphertext.
impl fmt::Debug for SealedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedText")
            .field("sealed_with", &self.sealed_with)
            .finish_non_exhaustive()
    }
}
