//! Tables: a stored world, a request, what is decided.

mod deregistering;
mod registering;
mod versioning;
mod world;
