//! Limits of requests to a gateway.

/// The size limit of a request: a job of the largest size that can be stored, or a node's reports of a
/// thousand allocations with ten events each.
pub const MAX_REQUEST_BYTES: usize = 16 << 20;
