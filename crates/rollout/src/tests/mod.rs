//! Scripts over a real replica, and the specification's scenarios by number.

mod deadline;
mod failure;
mod health;
mod property;
mod reschedule;
mod site;
mod stable;
