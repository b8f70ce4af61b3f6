//! Scripts over a real replica, and the specification's scenarios by number.

mod deadline;
mod ending;
mod failure;
mod fixture;
mod health;
mod promotion;
mod property;
mod refused;
mod requests;
mod stable;
mod updates;
