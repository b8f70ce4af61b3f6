//! Introduction tokens.

use proto::v1;
use serde::Serialize;

use crate::time;

/// A token without its secret.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct IntroductionToken<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    /// Unix nanoseconds.
    create_time: u64,
    expiration_time: Option<String>,
    /// 0: no limit.
    uses_max: u32,
    uses: u32,
    #[serde(rename = "NodeID")]
    node_id: &'a str,
    node_name: &'a str,
    node_pool: &'a str,
    create_index: u64,
    modify_index: u64,
}

impl<'a> From<&'a v1::IntroductionToken> for IntroductionToken<'a> {
    fn from(token: &'a v1::IntroductionToken) -> Self {
        Self {
            id: &token.id,
            create_time: token.created_at_ns,
            expiration_time: time::json(token.expires_at_ns),
            uses_max: token.uses_max,
            uses: token.uses,
            node_id: &token.node_id,
            node_name: &token.node_name,
            node_pool: &token.node_pool,
            create_index: token.create_index,
            modify_index: token.modify_index,
        }
    }
}

/// A new token, with the text that a node needs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreatedToken<'a> {
    token: &'a str,
    #[serde(flatten)]
    introduction_token: IntroductionToken<'a>,
}

impl<'a> CreatedToken<'a> {
    pub fn new(text: &'a str, token: &'a v1::IntroductionToken) -> Self {
        Self {
            token: text,
            introduction_token: token.into(),
        }
    }
}
