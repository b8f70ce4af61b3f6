//! Identity tokens of tasks: JSON Web Tokens that other systems verify by published keys.
//!
//! In reading order: [`request`] is a node's request for a token; [`claims`] are the contents of a
//! token, made from a [`Grant`]; [`signing`] makes key pairs and signs with ES256; [`sealing`]
//! encrypts private keys for the store; [`keyring`] decides which key is active and when keys come and
//! go; [`jwks`] is the published form of the keys, and verifies tokens by it; [`discovery`] is the
//! OpenID document that leads there; [`renewal`] is the time at which a token is replaced.
//!
//! Pure: time and randomness are arguments. Whether a node may have a token is decided in
//! `admission`.

pub mod claims;
pub mod discovery;
pub mod jwks;
pub mod keyring;
pub mod renewal;
pub mod request;
pub mod sealing;
pub mod signing;
mod text;
pub mod variables;

pub use claims::{Audience, Claims, Grant};
pub use discovery::Discovery;
pub use jwks::{Jwks, VerifyError};
pub use renewal::renewal_at;
pub use request::{SignedToken, Token, TokenRequest, Workload, cluster_identity};
pub use sealing::{KeyEncryptionKeys, KeyError};
pub use signing::SigningPair;

/// The only algorithm: ECDSA over P-256 with SHA-256.
pub const ALGORITHM: &str = "ES256";

/// The path of the keys at a gateway.
pub const JWKS_PATH: &str = "/.well-known/jwks.json";
/// The path of the OpenID document at a gateway.
pub const DISCOVERY_PATH: &str = "/.well-known/openid-configuration";
