//! Ranking: the best node for an allocation of a group, and the next best once it is taken.
//!
//! Every feasible node is scored once per group and evaluation; a placement rescores the one node it
//! touches. Equal asks of a group share the ranking, so ten thousand placements cost ten thousand heap
//! operations and not ten million scores.
//!
//! In reading order: `ask` is the request and its result; `score` is the arithmetic; `preferences` are
//! the group's affinities and spreads, and `affinity` the affinity score of each node; `column` reads an
//! attribute of all nodes once; `spread` and `property` count allocations by value; `score_buckets`
//! orders nodes; `preemption_candidates` orders full nodes; `assignment` gives an allocation its ports,
//! cores and devices; `search` combines these; `metrics` reports the result.

mod affinity;
pub(crate) mod ask;
pub(crate) mod assignment;
mod column;
pub(crate) mod metrics;
mod preemption_candidates;
pub(crate) mod preferences;
mod property;
pub(crate) mod score;
mod score_buckets;
pub(crate) mod search;
mod spread;
#[cfg(test)]
mod tests;
