//! Tables: a stored world, a request, what is decided.

mod deregistering;
mod planning;
mod registering;
mod versioning;
mod world;
