//! What `-json` prints: the objects of the HTTP API, with Nomad's keys, one file per noun.
//!
//! Keys are stable; those that the API here has no value for are left out. Durations are integer
//! nanoseconds, `CreateTime` and its like Unix nanoseconds, points in time otherwise RFC 3339.

pub(crate) mod alloc;
pub(crate) mod deployment;
pub(crate) mod eval;
pub(crate) mod event;
pub(crate) mod explain;
pub(crate) mod job;
pub(crate) mod metric;
pub(crate) mod namespace;
pub(crate) mod node;
pub(crate) mod node_pool;
pub(crate) mod operator;
pub(crate) mod plan;
pub(crate) mod scaling;
#[cfg(test)]
mod tests;
pub(crate) mod volume;

/// Returns a span in nanoseconds; a missing one is 0.
fn nanoseconds(span: Option<&prost_types::Duration>) -> i64 {
    span.map_or(0, |span| {
        span.seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(i64::from(span.nanos))
    })
}
