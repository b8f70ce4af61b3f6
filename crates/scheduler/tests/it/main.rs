//! The scheduler from outside: scripts with their expected output, the retry loop, and properties
//! of random histories.
//!
//! The tables in `tables/` need no Rust to read or extend: `=== name` begins a scenario, lines that
//! start with `>` are commands (listed in `script.rs`), the others are their output. Run the tests with
//! `UPDATE_GOLDENS=1` to update the output, and review the difference.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails has failed its test"
)]

mod belongings;
mod budget;
mod cluster;
mod dedicated;
mod explained;
mod explaining;
mod goldens;
mod placing;
mod preempting;
mod preempting_devices;
mod preferences;
mod properties;
mod random_history;
mod report;
mod runs;
mod script;
mod volumes;
