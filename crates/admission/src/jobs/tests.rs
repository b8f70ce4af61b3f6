//! Tables: stored objects, a request, and the decision on it.

mod deregistering;
mod dispatching;
mod fixture;
mod launching;
mod marking;
mod registering;
mod reverting;
mod scaling;
mod stopping;
mod versioning;
mod work;
