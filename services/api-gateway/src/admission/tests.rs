//! Tables: a stored world, a request, what is decided.

mod deregistering;
mod marking;
mod planning;
mod registering;
mod reverting;
mod versioning;
mod world;
