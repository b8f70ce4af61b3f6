//! The published keys (RFC 7517), and the verification of tokens by them.

use model::{Keyring, Timestamp};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use crate::ALGORITHM;
use crate::claims::Claims;
use crate::text;

/// Bytes of a document of keys. Ours has some 200 a key.
pub const DOCUMENT_MAX: usize = 64 * 1024;
/// Bytes of a token. Ours have some 900; HTTP servers accept headers of 8 KiB.
pub const TOKEN_MAX: usize = 16 * 1024;
/// The first byte of an uncompressed point.
const UNCOMPRESSED: u8 = 4;
/// Bytes of a coordinate of P-256.
const COORDINATE: usize = 32;
/// The tolerance for a token of a clock that is ahead.
const LEEWAY_S: u64 = 60;

/// A document of keys. Keys of other kinds than ES256 are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Jwks {
    pub keys: Vec<Jwk>,
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jwk {
    kty: String,
    crv: String,
    x: String,
    y: String,
    #[serde(rename = "use")]
    usage: String,
    alg: String,
    kid: String,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: String,
}

/// A text that is not a document of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    #[error("the document of keys is larger than {DOCUMENT_MAX} bytes")]
    TooLarge,
    #[error("this is not a document of keys: want JSON with a list `keys`")]
    Malformed,
}

/// A token that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    #[error("this is not a signed token")]
    Malformed,
    #[error("the token is not signed with {ALGORITHM}")]
    Algorithm,
    #[error("the key that signed the token is not published")]
    UnknownKey,
    #[error("the signature is wrong")]
    Signature,
    #[error("the token is not valid yet")]
    Early,
    #[error("the token has expired")]
    Expired,
}

impl Jwks {
    /// Returns the published form of a keyring. A key whose stored form is damaged is left out.
    pub fn of(keyring: &Keyring) -> Self {
        let key = |key: &model::SigningKey| {
            let point = text::decode(&key.public_key)?;
            let (first, coordinates) = point.split_first()?;
            if *first != UNCOMPRESSED || coordinates.len() != 2 * COORDINATE {
                return None;
            }
            let (x, y) = coordinates.split_at(COORDINATE);
            Some(Jwk {
                kty: "EC".to_owned(),
                crv: "P-256".to_owned(),
                x: text::encode(x),
                y: text::encode(y),
                usage: "sig".to_owned(),
                alg: ALGORITHM.to_owned(),
                kid: key.id.to_string(),
            })
        };
        Self {
            keys: keyring.keys.iter().filter_map(key).collect(),
        }
    }

    /// Returns the document as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts are always JSON")
    }

    /// Reads a document.
    ///
    /// # Errors
    /// It is too large, or no document of keys.
    pub fn parse(document: &[u8]) -> Result<Self, DocumentError> {
        if document.len() > DOCUMENT_MAX {
            return Err(DocumentError::TooLarge);
        }
        let document: Document =
            serde_json::from_slice(document).map_err(|_| DocumentError::Malformed)?;
        let keys = document.keys.into_iter();
        let keys = keys.filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let is_ours = |key: &Jwk| key.kty == "EC" && key.crv == "P-256" && key.alg == ALGORITHM;
        Ok(Self {
            keys: keys.filter(is_ours).collect(),
        })
    }

    /// Returns the claims of a token that one of the keys has signed and that is valid at `now`.
    ///
    /// The caller checks the audience.
    ///
    /// # Errors
    /// The first reason against it.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, VerifyError> {
        if token.len() > TOKEN_MAX {
            return Err(VerifyError::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(VerifyError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(VerifyError::Malformed)?;
        let header: Header = read(header)?;
        if header.alg != ALGORITHM {
            return Err(VerifyError::Algorithm);
        }
        let key = self.keys.iter().find(|key| key.kid == header.kid);
        let point = key.ok_or(VerifyError::UnknownKey)?.point();
        let point = point.ok_or(VerifyError::UnknownKey)?;
        let signature = text::decode(signature).ok_or(VerifyError::Malformed)?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| VerifyError::Signature)?;
        let claims: Claims = read(claims)?;
        let now = now.as_secs();
        if claims.nbf > now.saturating_add(LEEWAY_S) {
            return Err(VerifyError::Early);
        }
        if claims.exp <= now {
            return Err(VerifyError::Expired);
        }
        Ok(claims)
    }
}

impl Jwk {
    fn point(&self) -> Option<Vec<u8>> {
        let (x, y) = (text::decode(&self.x)?, text::decode(&self.y)?);
        let is_whole = x.len() == COORDINATE && y.len() == COORDINATE;
        is_whole.then(|| [&[UNCOMPRESSED], &*x, &*y].concat())
    }
}

fn read<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, VerifyError> {
    let bytes = text::decode(part).ok_or(VerifyError::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| VerifyError::Malformed)
}
