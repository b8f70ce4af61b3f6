//! Limits of requests to a gateway.

/// The size limit of a message to the services of jobs and node sessions: room for a node's reports of
/// a thousand allocations with ten events each. It does not limit jobs: a job has to fit twice, as the
/// job and as its version, in one transaction of the store, which is refused with the field's name
/// (`too_large`).
pub const MAX_REQUEST_BYTES: usize = 16 << 20;
