//! Leader election: one process of a service leads as long as its lease lives.
//!
//! The election key `election/<service>` is bound to a lease; the process that creates it leads until
//! it is deleted. Its create revision is the leader's [`Fence`]: every write of a leader compares it,
//! so a deposed leader cannot write even when it does not know. Reads and promises to callers carry
//! no compare, so a [`Leadership`] also ends by the clock: a third of the lease's time before etcd
//! lets the lease expire.
//!
//! In reading order: [`fence`]; [`leadership`], one term; `lease` renews its lease; `candidate` has
//! the options; `campaign` wins and resigns; [`run`] is the loop that services use.

mod campaign;
mod candidate;
pub mod fence;
pub mod leadership;
pub(crate) mod lease;
mod metrics;
pub mod run;

pub use candidate::{Election, ElectionOptions};
pub use fence::Fence;
pub use leadership::Leadership;
pub use metrics::ElectionMetrics;
pub use run::run_elected;
