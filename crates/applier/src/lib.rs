//! What of a plan still fits, what is refused and why, and in which transactions it is written.
//!
//! Schedulers plan on snapshots that are a little old, several at once; this is the one place
//! where that optimism is checked. Pure: [`verify()`] judges one plan against one snapshot;
//! [`Applier`] is the machine that queues plans, has them verified on top of what is being
//! committed, and groups and cuts them into transactions. It says what to do ([`Effect`]) and is told
//! what came of it ([`Event`]); the loop around it is `services/plan-applier`.
//!
//! In reading order: [`op`] is what can be in a transaction; [`pending`] is what is on its way; [`verify`](mod@verify) judges, node by node and as
//! a whole, and lists what is to be written; [`cut`] makes pieces of it that a transaction can
//! hold; [`staged`] is for pieces that are only valid together; [`machine`] keeps it all going. [`bad_nodes`] notices nodes that are rejected over and over.
//!
//! What makes it safe with others about: only the plan-applier's leader adds to what allocations
//! hold (the cluster-controller's marks them on draining nodes, which takes nothing), and every
//! transaction is fenced by its election; what others may change meanwhile (the node, the
//! job, the evaluation, the deployment) is compared in the transaction by mod revision; a node's
//! own reports only ever free what allocations hold.

pub mod bad_nodes;
pub mod cut;
pub mod machine;
pub mod op;
pub mod pending;
pub mod staged;
pub mod verify;

pub use cut::Piece;
pub use machine::{Answer, Applier, CommitId, Effect, Event, Ticket};
pub use op::Op;
pub use pending::Pending;
pub use verify::{Accepted, NodeVerdict, Refusal, Verdict, Verification, verify};
