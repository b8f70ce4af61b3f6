//! Tables: a stored world, a request, what is decided.

mod deregistering;
mod dispatching;
mod launching;
mod planning;
mod registering;
mod scaling;
mod versioning;
mod world;
