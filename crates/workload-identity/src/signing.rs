//! Key pairs, and signatures with ES256 (RFC 7518, 3.4).

use std::fmt;

use model::SigningKeyId;
use ring::rand::SecureRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde::Serialize;

use crate::ALGORITHM;
use crate::claims::Claims;
use crate::request::Token;
use crate::text;

/// The source of randomness has failed, or a stored key is no key of P-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningError {
    #[error("the system gives no random bytes")]
    Random,
    #[error(
        "the stored private key is damaged: rotate the keys with `kafila operator root keyring rotate`"
    )]
    Key,
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'a str,
    typ: &'a str,
    kid: &'a str,
}

/// A key pair in memory. `Debug` shows its id alone.
pub struct SigningPair {
    id: SigningKeyId,
    pair: EcdsaKeyPair,
}

impl fmt::Debug for SigningPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningPair")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Makes a private key, as PKCS #8.
pub(crate) fn generate(random: &dyn SecureRandom) -> Result<Vec<u8>, SigningError> {
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, random);
    Ok(pkcs8.map_err(|_| SigningError::Random)?.as_ref().to_vec())
}

impl SigningPair {
    /// Reads a private key. Its public half follows from it.
    ///
    /// # Errors
    /// [`SigningError::Key`].
    pub(crate) fn read(
        id: SigningKeyId,
        pkcs8: &[u8],
        random: &dyn SecureRandom,
    ) -> Result<Self, SigningError> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, random)
            .map_err(|_| SigningError::Key)?;
        Ok(Self { id, pair })
    }

    pub fn id(&self) -> SigningKeyId {
        self.id
    }

    /// Returns the public key in its stored form.
    pub(crate) fn public_key(&self) -> String {
        text::encode(self.pair.public_key())
    }

    /// Signs `claims`; returns `<header>.<claims>.<signature>`.
    ///
    /// # Errors
    /// [`SigningError::Random`]: a signature needs random bytes.
    pub fn sign(&self, claims: &Claims, random: &dyn SecureRandom) -> Result<Token, SigningError> {
        let header = Header {
            alg: ALGORITHM,
            typ: "JWT",
            kid: &self.id.to_string(),
        };
        let (header, claims) = (json(&header), json(claims));
        let signed = format!("{}.{}", text::encode(header), text::encode(claims));
        let signature = self.pair.sign(random, signed.as_bytes());
        let signature = signature.map_err(|_| SigningError::Random)?;
        Ok(Token::new(format!("{signed}.{}", text::encode(signature))))
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts, numbers and lists are always JSON")
}
