//! The `kafila` command. Everything is in the library, so that tests link it once.

use std::process::ExitCode;

/// The allocator of musl holds one lock; threads of services would wait for each other.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kafila_cli::run(std::env::args_os())
}
