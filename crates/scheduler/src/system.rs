//! System and sysbatch jobs: each group once on every node that can run it.
//!
//! No node is chosen; every node is checked. `diff` decides about one allocation; `reconcile` goes
//! through the nodes of each group and limits the pace of updates, with its types in `changes` and
//! `reconciler`; `property` applies `distinct_property`, `failures` the reschedule policy; `place` makes
//! the plan.
//!
//! Updates of a system job are deployments as of services, with two differences: `canary` is a
//! percentage of the nodes, and the desired total follows the number of nodes. A sysbatch job has no
//! deployments: an ended allocation stays ended until the job changes.
//!
//! A failed allocation is replaced by the next evaluation of the job. With a `reschedule` policy it is
//! replaced on its node when the policy allows it.

pub(crate) mod changes;
mod diff;
mod failures;
pub(crate) mod place;
mod property;
mod reconcile;
pub(crate) mod reconciler;
