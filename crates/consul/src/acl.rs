//! Tokens of Consul, as logins give them.

use serde::Deserialize;

use http_client::Token;

/// A token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AclToken {
    /// Names the token without giving its rights.
    #[serde(rename = "AccessorID")]
    pub accessor: String,
    #[serde(rename = "SecretID")]
    pub secret: Token,
    /// RFC 3339; absent: it does not end.
    pub expiration_time: Option<String>,
}
