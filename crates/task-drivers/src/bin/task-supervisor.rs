//! A supervisor by itself, for tests and for agents that are not the `kafila` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    task_drivers::supervisor::main(std::env::args_os().skip(1))
}
