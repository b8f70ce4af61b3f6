//! The supervisor as a program of its own, for tests and for agents other than the `kafila` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    task_drivers::supervisor::main(std::env::args_os().skip(1))
}
