//! Lists and look-ups of an API: pages of ordered items, objects found by the start of an id, whole ids,
//! and the times of blocking queries.
//!
//! [`prefix`] finds one of many ids, [`find`] does so for each noun of a snapshot; [`built_in`] has the
//! namespaces and node pools that exist without being stored, [`JobIncarnation`] tells jobs of one id apart, and
//! [`scaling_policies()`] has the policies of all jobs.

pub mod blocking;
pub mod built_in;
pub mod find;
mod ids;
mod job_incarnation;
mod namespaces;
pub mod page;
pub mod prefix;
mod scaling_policies;

pub use ids::{whole_id, whole_ids};
pub use job_incarnation::JobIncarnation;
pub use namespaces::Namespaces;
pub use page::{Page, PageKey};
pub use prefix::{NotFound, UuidPrefix};
pub use scaling_policies::{ScalingPolicy, scaling_policies, scaling_policy};
