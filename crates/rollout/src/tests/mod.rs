//! Scripts over a real replica, and the specification's scenarios by number.

mod deadline;
mod ending;
mod failure;
mod health;
mod promotion;
mod property;
mod refused;
mod reschedule;
mod site;
mod stable;
mod users;
