//! Common core of the gateways: fresh snapshots, optimistic commits, and errors with gRPC codes.
//!
//! In reading order: [`transactions`] decides on requests and commits them, those of registrations through
//! `group_commit`, many in one transaction; `deletion` deletes an object in two steps; [`revisions`] asks the store for
//! its revision, once for many readers; [`error`] has the codes, and `refusals` gives every refusal
//! its code by its kind, [`too_large`] names the field of an object that does not fit; [`WorkSlots`] bound the requests in
//! progress; [`first_request`] reads the beginning of a stream; [`metrics`] counts commits.

mod deletion;
pub mod error;
mod first_request;
mod group_commit;
mod limits;
pub mod metrics;
mod refusals;
pub mod revisions;
pub mod too_large;
pub mod transactions;
mod work_slots;

pub use error::{Error, is_unanswered};
pub use first_request::first_request;
pub use limits::MAX_REQUEST_BYTES;
pub use metrics::{GaugeGuard, Metrics};
pub use transactions::{Core, Step, read_failure};
pub use work_slots::WorkSlots;
