//! The helper as a program of its own, for tests and for agents other than the `kafila` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    artifact_fetch::helper::main()
}
