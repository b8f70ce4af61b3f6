//! Launch times of a periodic job, and the objects that one launch writes.
//!
//! Shared by the cluster-controller, which launches jobs on time, and by the gateway, which
//! launches a job by hand and starts the launch record of a new job.

mod launch;
mod timetable;

pub use launch::{Launch, advanced, first_launch, launch, launched_until, next_launch};
pub use timetable::Timetable;
