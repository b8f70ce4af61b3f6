//! Checks of the node's secret and of allocations, which the handlers share.

use std::sync::Arc;

use model::AllocId;
use model::ids::InvalidId;
use service_kit::CancellationToken;
use tonic::Status;

use crate::allocations::agent::Agent;
use crate::context::Context;

#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) context: Arc<Context>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) drain: CancellationToken,
}

impl Files {
    /// # Errors
    /// The secret is not the node's.
    pub(super) fn check_secret(&self, secret: &str) -> Result<(), Status> {
        if is_equal(secret, &self.context.identity.secret) {
            return Ok(());
        }
        Err(Status::permission_denied("the secret is not this node's"))
    }
}

/// # Errors
/// The text is not an id of an allocation.
pub(super) fn read_alloc_id(text: &str) -> Result<AllocId, Status> {
    let invalid = |error: InvalidId| proto::status::invalid_field("alloc_id", error.to_string());
    text.parse().map_err(invalid)
}

/// Returns the error of an allocation that this node does not have. The gateway asks for allocations that
/// were here.
pub(super) fn not_here(alloc_id: AllocId) -> Status {
    let message = format!(
        "its node no longer has allocation {alloc_id}: it has ended, and the node has removed its directory \
         with the logs (section `gc` of the node's settings)"
    );
    Status::not_found(message)
}

/// Compares in constant time for texts of equal length.
fn is_equal(given: &str, secret: &str) -> bool {
    let differences = given
        .bytes()
        .zip(secret.bytes())
        .fold(0, |found, (a, b)| found | (a ^ b));
    given.len() == secret.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_complete_secret_is_equal() {
        assert!(is_equal("abc", "abc"));
        for wrong in ["", "ab", "abd", "abcd"] {
            assert!(!is_equal(wrong, "abc"), "{wrong:?}");
        }
    }
}
