//! Scripts over a real replica, and the specification's scenarios by number.

mod deletions;
mod evals;
mod fleet;
mod liveness;
mod mass_failure;
mod periodic;
mod returning;
mod self_watch;
