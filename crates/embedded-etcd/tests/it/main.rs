//! The store as its clients see it: through gRPC, in process and over TCP.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod crash;
mod differential;
mod disk;
mod smoke;
mod support;
mod watch;
