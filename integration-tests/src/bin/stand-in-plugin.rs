//! A plugin with a task driver, which nodes of the tests have: see `crates/driver-plugin-test-kit`.

use std::process::ExitCode;

fn main() -> ExitCode {
    driver_plugin_test_kit::main(std::env::args().skip(1))
}
