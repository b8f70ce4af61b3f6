//! The `kafila` command. Everything is in the library, so that tests link it once.

use std::process::ExitCode;

fn main() -> ExitCode {
    kafila_cli::run(std::env::args_os())
}
