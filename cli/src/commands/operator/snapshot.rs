//! `kafila operator snapshot …`

mod agent;
mod download;
mod inspect;
mod restore;
mod save;
mod schedule;
mod store;
mod target;
mod verified;

use crate::args::operator::snapshot::Command;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(crate) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Save(args) => save::run(context, args).await,
        Command::Inspect(args) => inspect::run(context, args),
        Command::Restore(args) => restore::run(context, args).await,
        Command::Agent(args) => agent::run(context, args).await,
    }
}
