//! `kafila job …`

pub(crate) mod dispatch;
pub(crate) mod eval;
pub(crate) mod history;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod lists;
pub(crate) mod plan;
pub(crate) mod promote;
pub(crate) mod restart;
pub(crate) mod revert;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod tag;
pub(crate) mod validate;
pub(crate) mod watch;

use crate::args::job::Command;
use crate::args::job::operations::Periodic;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Runs a command of jobs.
pub(super) async fn run_command(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Init(args) => init::run(context, &args),
        Command::Run(args) => run::run(context, args).await,
        Command::Plan(args) => plan::run(context, &args).await,
        Command::Status(args) => status::run(context, &args).await,
        Command::Stop(args) => stop::run(context, args).await,
        Command::Restart(args) => Box::pin(restart::run(context, &args)).await,
        Command::Inspect(args) => inspect::run(context, &args).await,
        Command::Validate(args) => validate::run(context, &args).await,
        Command::Promote(args) => promote::run(context, &args).await,
        Command::Revert(args) => revert::run(context, &args).await,
        Command::History(args) => history::run(context, &args).await,
        Command::Tag(command) => tag::run(context, &command).await,
        Command::Dispatch(args) => dispatch::dispatch(context, &args).await,
        Command::Scale(args) => scale::scale(context, &args).await,
        Command::ScalingEvents(args) => scale::scaling_events(context, &args).await,
        Command::Periodic(Periodic::Force(args)) => dispatch::force(context, &args).await,
        Command::Eval(args) => eval::eval(context, &args).await,
        Command::Action(args) => Box::pin(super::action::run(context, &args)).await,
        Command::Allocs(args) => lists::allocs(context, &args).await,
        Command::Deployments(args) => lists::deployments(context, &args).await,
    }
}
