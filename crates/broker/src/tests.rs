//! Scripts, the specification's scenarios and properties.

mod blocked;
mod delivery;
mod fixture;
mod free_capacity;
mod limits;
mod paused;
mod property;
mod queues;
mod replica;
mod values;
