//! The scheduler from outside: scripts with their expected output, the retry loop, and properties
//! of random histories.
//!
//! The tables in `tables/` are read by people and need no Rust to extend: `=== name` begins a
//! scenario, lines that start with `>` are commands (listed in `script.rs`), the others are what
//! they print. Run the tests with `UPDATE_GOLDENS=1` to write down what is printed now, and look at
//! the difference.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails has failed its test"
)]

mod belongings;
mod exclusive;
mod explained;
mod explaining;
mod goldens;
mod placing;
mod preempting;
mod preempting_devices;
mod preferences;
mod properties;
mod report;
mod runs;
mod script;
mod site;
mod volumes;
mod world;
