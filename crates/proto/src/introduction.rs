//! Introduction tokens.

use model::{Indexed, IntroductionToken};

use crate::fields::id_or_empty;
use crate::v1;

/// Leaves out the hash of the secret.
impl From<&Indexed<IntroductionToken>> for v1::IntroductionToken {
    fn from(token: &Indexed<IntroductionToken>) -> Self {
        let value = &token.value;
        Self {
            id: value.id.to_string(),
            created_at_ns: value.created_at.0,
            expires_at_ns: value.expires_at.0,
            uses_max: value.uses_max,
            uses: value.uses,
            node_id: id_or_empty(value.node_id),
            node_name: value.node_name.clone(),
            node_pool: value.node_pool.clone(),
            create_index: token.create_index,
            modify_index: token.modify_index,
        }
    }
}
