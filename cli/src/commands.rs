//! The commands, one file per noun; a noun with larger commands has a folder with a file for each.
//!
//! A command calls the gateway, turns the answer into text with `render` or `json`, and prints it.

use crate::args::{Command, Status, event as event_args, job as job_args, system as system_args};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::resolve::{self, Object};

mod action;
mod alloc;
mod complete;
mod completions;
mod confirm;
mod csi;
mod deployment;
mod etcd;
mod eval;
mod event;
mod example;
pub(crate) mod job;
mod key_value;
mod local_node;
mod monitor;
mod namespace;
mod node;
mod node_pool;
mod operator;
mod page;
mod plugin;
mod scaling;
mod services;
mod system;
mod tls;
mod var;
mod version;
mod volume;

pub(crate) use self::var::{LOCK_GUARD_SUBCOMMAND, lock_guard};

/// Runs a command that calls the gateway.
pub(crate) async fn run(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Job(command) => Box::pin(job::run_command(context, command)).await,
        Command::Alloc(command) => Box::pin(alloc::run_command(context, command)).await,
        Command::Node(command) => Box::pin(node::run_command(context, command)).await,
        Command::Eval(command) => Box::pin(eval::run_command(context, command)).await,
        Command::Deployment(command) => Box::pin(deployment::run_command(context, command)).await,
        Command::Operator(command) => Box::pin(operator::run_command(context, command)).await,
        Command::Tls(command) => tls::run(context, &command),
        Command::Namespace(command) => namespace::run(context, &command).await,
        Command::Event(event_args::Command::Stream(args)) => event::stream(context, &args).await,
        Command::Monitor(args) => Box::pin(monitor::run(context, &args)).await,
        Command::Service(command) => services::run(context, &command).await,
        Command::Plugin(command) => plugin::run(context, &command).await,
        Command::Scaling(command) => scaling::run(context, &command).await,
        Command::System(system_args::Command::Gc(args)) => system::gc(context, &args).await,
        Command::Var(command) => var::run(context, &command).await,
        Command::Volume(command) => volume::run(context, &command).await,
        Command::Status(args) => status(context, &args).await,
        Command::Version(args) => version::run(context, &args).await,
        Command::Completions(args) => completions::run(context, &args),
        Command::Complete(args) => complete::run(context, &args).await,
        // Shortcuts for commands of the nouns above.
        Command::Run(args) => job::run::run(context, args).await,
        Command::Plan(args) => job::plan::run(context, &args).await,
        Command::Init(args) => job::init::run(context, &args),
        Command::Stop(args) => job::stop::run(context, args).await,
        Command::Inspect(args) => job::inspect::run(context, &args).await,
        Command::Validate(args) => job::validate::run(context, &args).await,
        Command::Action(args) => Box::pin(action::run(context, &args)).await,
        Command::AllocStatus(args) => alloc::status::run(context, &args).await,
        Command::Logs(args) => alloc::logs::run(context, &args).await,
        Command::Exec(args) => alloc::exec::run(context, &args).await,
        Command::Fs(args) => Box::pin(alloc::fs::run(context, &args)).await,
        Command::NodeStatus(args) => node::status(context, &args).await,
        Command::EvalStatus(args) => eval::status(context, &args).await,
    }
}

/// Shows the object with an ID.
async fn status(context: &Context, args: &Status) -> Result<Exit, Error> {
    let job = |id: Option<String>| job_args::Status {
        id,
        verbose: args.verbose,
        json: args.json,
        ..job_args::Status::default()
    };
    let Some(prefix) = &args.id else {
        return job::status::run(context, &job(None)).await;
    };
    let style = context.style_err(args.verbose);
    match resolve::any_object(&context.connection, prefix, &style).await? {
        Object::Job(stub) => job::status::show(context, &job(None), &stub).await,
        Object::Allocation(alloc) => {
            let shown = alloc::status::Shown {
                verbose: args.verbose,
                json: args.json,
                ..alloc::status::Shown::default()
            };
            alloc::status::show(context, &alloc, shown).await
        }
        Object::Evaluation(eval) => eval::show(context, &eval, args.verbose, args.json).await,
        Object::Deployment(deployment) => {
            deployment::show(context, &deployment, args.verbose, args.json).await
        }
        Object::Node(node) => {
            let shown = node::Shown {
                verbose: args.verbose,
                json: args.json,
                ..node::Shown::default()
            };
            node::show(context, &node, shown).await
        }
    }
}
