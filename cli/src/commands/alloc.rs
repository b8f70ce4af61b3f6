//! `kafila alloc …`

pub(crate) mod checks;
mod escape;
pub(crate) mod exec;
pub(crate) mod fs;
pub(crate) mod logs;
pub(crate) mod restart;
pub(crate) mod signal;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod stop;
mod tail;
pub(crate) mod target;
mod tty;

use crate::args::alloc::Command;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Runs a command of allocations.
pub(super) async fn run_command(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Status(args) => status::run(context, &args).await,
        Command::Logs(args) => logs::run(context, &args).await,
        Command::Fs(args) => Box::pin(fs::run(context, &args)).await,
        Command::Exec(args) => exec::run(context, &args).await,
        Command::Signal(args) => signal::run(context, &args).await,
        Command::Stats(args) => stats::run(context, &args).await,
        Command::Restart(args) => restart::run(context, &args).await,
        Command::Stop(args) => stop::run(context, &args).await,
        Command::Checks(args) => checks::run(context, &args).await,
    }
}
