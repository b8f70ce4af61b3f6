//! The `kafila` command. Everything is in the library, so that tests link it once.

use std::process::ExitCode;

/// Services decode and apply many small objects: with the allocator of glibc, that takes a fifth of their
/// time. The allocator of musl holds one lock, which their threads would wait for. Huge pages are left
/// out (`no_thp`): a heap that grows in small steps pays for clearing each as a whole.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kafila_cli::run(std::env::args_os())
}
