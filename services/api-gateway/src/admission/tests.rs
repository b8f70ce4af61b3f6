//! Tables: a stored world, a request, what is decided.

mod deregistering;
mod dispatching;
mod launching;
mod marking;
mod planning;
mod registering;
mod reverting;
mod scaling;
mod versioning;
mod world;
