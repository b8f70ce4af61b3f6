//! Requests to change a job.
//!
//! In reading order: [`decision`] is what every decider takes and returns; [`submitted`] reads the job of a
//! file; [`mod@register`],
//! [`mod@revert`] and [`mod@deregister`] (which purges, too) write versions of a job, and [`marks`]
//! calls them stable and tags them. [`mod@dispatch`], [`mod@force`], [`mod@evaluate`],
//! [`mod@scale`] and [`mod@stop_alloc`] are the other operations; [`shutdown_delay`] is about stops
//! without delays. [`restart_alloc`], [`alloc_request`] and
//! [`logs`] find the node that answers a request ([`alloc_node`]). [`missing`] looks up jobs.
//! [`docker_config`] checks docker tasks; [`namespace_rules`] restricts a job to what its namespace
//! allows, and [`region`] to the cluster's region; [`request_id`] makes a retry find the first attempt, and
//! [`mod@version_at`] the version that it wrote.

pub mod alloc_node;
pub mod alloc_request;
pub mod consul_clusters;
pub mod decision;
pub mod deregister;
pub mod dispatch;
pub mod docker_config;
pub mod evaluate;
pub mod force;
pub mod limits;
pub mod logs;
pub mod marks;
pub mod missing;
pub mod namespace_rules;
pub mod refusal;
pub mod region;
pub mod register;
pub mod request_id;
pub mod restart_alloc;
pub mod revert;
pub mod scale;
pub mod shutdown_delay;
pub mod stop_alloc;
pub mod submitted;
#[cfg(test)]
mod tests;
mod version_at;
mod writes;

pub use decision::{Answer, Decision, Outcome, Proposal, Receipt, RequestContext};
pub use deregister::{DeregisterRequest, deregister};
pub use refusal::{FoundIndex, JobRefusal};
pub use register::{Preserve, RegisterRequest, register, validate};
pub use revert::{RevertRequest, revert};
pub use submitted::SubmittedJob;
