//! The applier from outside: judging plans, cutting them, and the machine with a store that
//! conflicts, forgets to answer, and never writes what a compare forbids.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails has failed its test"
)]

mod cutting;
mod histories;
mod judging;
mod machine;
mod scenarios;
mod staged;
mod store;
mod volumes;
