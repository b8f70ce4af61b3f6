//! Verification of plans: the part that still fits, the reasons for refusals, and the transactions.
//!
//! Schedulers plan concurrently on slightly old snapshots; this is the only place that checks their
//! optimism. Pure: [`verify()`] checks one plan against one snapshot. [`Applier`] is the machine that
//! queues plans, requests their verification on top of uncommitted writes, and groups and splits
//! them into transactions. It emits an [`Effect`] and receives its outcome as an [`Event`]; the loop
//! around it is `services/plan-applier`.
//!
//! In reading order: [`piece`] is a transaction's worth of writes; [`pending`] holds the writes under
//! way; [`verify`](mod@verify) checks a plan node by node and as a whole, and lists its writes
//! ([`plan_writes`]); [`split`] makes pieces of them; [`staged`] is for pieces that are only valid
//! together; [`machine`] drives it all, and `quick` tells which verifications need no thread of their own.
//! [`bad_nodes`] detects nodes with repeated rejections.
//!
//! Safety with concurrent writers: only the plan-applier's leader adds to the resources that
//! allocations hold (the cluster-controller's leader marks them on draining nodes, which takes
//! nothing), and its election fences every transaction. Objects that others may change meanwhile
//! (node, job, evaluation, deployment) are compared in the transaction by mod revision. A node's
//! own reports only ever release resources.

pub mod bad_nodes;
pub mod machine;
pub mod pending;
pub mod piece;
pub mod plan_writes;
mod quick;
pub mod split;
pub mod staged;
pub mod verify;

pub use machine::{Answer, Applier, CommitId, Effect, Event, Ticket};
pub use pending::Pending;
pub use piece::Piece;
pub use quick::is_quick;
pub use verify::{Accepted, NodeOutcome, PlanRefusal, PlanVerification, Verification, verify};
