//! Signing keys of identity tokens.

use proto::v1;
use serde::Serialize;

use crate::time;

/// A signing key without its private part.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct SigningKey<'a> {
    #[serde(rename = "KeyID")]
    key_id: &'a str,
    state: &'a str,
    algorithm: &'a str,
    /// Unix nanoseconds.
    create_time: u64,
    active_from: Option<String>,
    /// `null` before the key retires.
    published_until: Option<String>,
}

impl<'a> From<&'a v1::SigningKey> for SigningKey<'a> {
    fn from(key: &'a v1::SigningKey) -> Self {
        Self {
            key_id: &key.id,
            state: &key.state,
            algorithm: &key.algorithm,
            create_time: key.created_at_ns,
            active_from: time::json(key.active_from_ns),
            published_until: time::json(key.published_until_ns),
        }
    }
}
