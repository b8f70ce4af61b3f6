//! Tests of the applier's public interface: verification, splitting, and the machine with a store
//! that conflicts and loses answers, and checks every compare.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails has failed its test"
)]

mod histories;
mod machine;
mod scenarios;
mod splitting;
mod staged;
mod store;
mod verifying;
mod volumes;
