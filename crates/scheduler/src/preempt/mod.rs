//! Who has to make way on a node for a job that is more important: as few and as unimportant as
//! will do.
//!
//! Only allocations of other jobs whose priority is at least [`PRIORITY_DELTA`] lower are ever asked.
//! Looks at one node at a time; which nodes are worth a look is the search's business, and what
//! "fits" means is the crate `placement`'s.
//!
//! In reading order: `candidates` are those who could make way; `cost` is the arithmetic; `choice`
//! takes one after the other until the ask fits, and then gives back whoever was not needed; `devices`
//! says which kind of device is cheapest to free. `preempted` is what a plan has evicted so far.

mod candidates;
mod choice;
mod cost;
mod devices;
mod preempted;
#[cfg(test)]
mod tests;

pub(crate) use candidates::{Candidate, Claim};
pub(crate) use choice::{Room, victims};
pub(crate) use cost::{PRIORITY_DELTA, preemption_score};
pub(crate) use preempted::Preempted;
