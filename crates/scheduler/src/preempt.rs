//! Preemption: the smallest set of victims with the lowest priorities that makes room on a node.
//!
//! Only allocations of other jobs are candidates, with a priority at least
//! [`PRIORITY_DELTA`](cost::PRIORITY_DELTA) lower. One node at a time; the search decides which
//! nodes are worth it, and the crate `placement` checks the fit.
//!
//! In reading order: `candidates` lists allocations that could be evicted; `cost` is the
//! arithmetic; `node_fit` is the node with the request; `choice` takes candidates until the ask
//! fits, and releases the unnecessary ones; `devices` finds the kind of device that is cheapest to
//! free; `preempted` holds the victims of the plan so far.

pub(crate) mod candidates;
pub(crate) mod choice;
pub(crate) mod cost;
mod devices;
pub(crate) mod node_fit;
pub(crate) mod preempted;
#[cfg(test)]
mod tests;
