//! The commands, one file per noun; a noun with larger commands has a folder with a file for each.
//!
//! A command calls the gateway, turns the answer into text with `render` or `json`, and prints it.

use crate::args::{
    Command, Status, alloc as alloc_args, job as job_args, job::operations as operation_args,
};
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
        Command::Job(job_args::Command::Run(args)) | Command::Run(args) => {
            job::run::run(context, args).await
        }
        Command::Job(job_args::Command::Plan(args)) | Command::Plan(args) => {
            job::plan::run(context, &args).await
        }
        Command::Job(job_args::Command::Init(args)) | Command::Init(args) => {
            job::init::run(context, &args)
        }
        Command::Job(job_args::Command::Status(args)) => job::status::run(context, &args).await,
        Command::Job(job_args::Command::Stop(args)) | Command::Stop(args) => {
            job::stop::run(context, args).await
        }
        Command::Job(job_args::Command::Inspect(args)) | Command::Inspect(args) => {
            job::inspect::run(context, &args).await
        }
        Command::Job(job_args::Command::Validate(args)) | Command::Validate(args) => {
            job::validate::run(context, &args).await
        }
        Command::Job(job_args::Command::Restart(args)) => {
            Box::pin(job::restart::run(context, &args)).await
        }
        Command::Job(job_args::Command::Promote(args)) => job::promote::run(context, &args).await,
        Command::Job(job_args::Command::Revert(args)) => job::revert::run(context, &args).await,
        Command::Job(job_args::Command::History(args)) => job::history::run(context, &args).await,
        Command::Job(job_args::Command::Tag(command)) => job::tag::run(context, &command).await,
        Command::Job(job_args::Command::Dispatch(args)) => {
            job::dispatch::dispatch(context, &args).await
        }
        Command::Job(job_args::Command::Scale(args)) => job::scale::scale(context, &args).await,
        Command::Job(job_args::Command::ScalingEvents(args)) => {
            job::scale::scaling_events(context, &args).await
        }
        Command::Job(job_args::Command::Periodic(operation_args::Periodic::Force(args))) => {
            job::dispatch::force(context, &args).await
        }
        Command::Job(job_args::Command::Eval(args)) => job::eval::eval(context, &args).await,
        Command::Job(job_args::Command::Allocs(args)) => job::lists::allocs(context, &args).await,
        Command::Job(job_args::Command::Deployments(args)) => {
            job::lists::deployments(context, &args).await
        }
        Command::Alloc(alloc_args::Command::Status(args)) | Command::AllocStatus(args) => {
            alloc::status::run(context, &args).await
        }
        Command::Alloc(alloc_args::Command::Logs(args)) | Command::Logs(args) => {
            alloc::logs::run(context, &args).await
        }
        Command::Alloc(alloc_args::Command::Exec(args)) | Command::Exec(args) => {
            alloc::exec::run(context, &args).await
        }
        Command::Alloc(alloc_args::Command::Fs(args)) | Command::Fs(args) => {
            Box::pin(alloc::fs::run(context, &args)).await
        }
        Command::Alloc(alloc_args::Command::Signal(args)) => {
            alloc::signal::run(context, &args).await
        }
        Command::Alloc(alloc_args::Command::Stats(args)) => alloc::stats::run(context, &args).await,
        Command::Job(job_args::Command::Action(args)) | Command::Action(args) => {
            Box::pin(action::run(context, &args)).await
        }
        Command::Alloc(alloc_args::Command::Checks(args)) => {
            alloc::checks::run(context, &args).await
        }
        Command::Alloc(alloc_args::Command::Restart(args)) => {
            alloc::restart::run(context, &args).await
        }
        Command::Alloc(alloc_args::Command::Stop(args)) => alloc::stop::run(context, &args).await,
        Command::Node(crate::args::node::Command::Status(args)) | Command::NodeStatus(args) => {
            node::status(context, &args).await
        }
        Command::Node(crate::args::node::Command::Eligibility(args)) => {
            node::eligibility(context, &args).await
        }
        Command::Node(crate::args::node::Command::Drain(args)) => {
            node::drain::run(context, &args).await
        }
        Command::Node(crate::args::node::Command::Introduction(command)) => {
            node::introduction::run(context, &command).await
        }
        Command::Node(crate::args::node::Command::Meta(command)) => {
            node::meta::run(context, &command).await
        }
        Command::Node(crate::args::node::Command::Stats(args)) => {
            node::control::stats(context, &args).await
        }
        Command::Node(crate::args::node::Command::Refresh(args)) => {
            node::control::refresh(context, &args).await
        }
        Command::Node(crate::args::node::Command::Pool(command)) => {
            node_pool::run(context, &command).await
        }
        Command::Tls(command) => tls::run(context, &command),
        Command::Namespace(command) => namespace::run(context, &command).await,
        Command::Eval(crate::args::eval::Command::List(args)) => eval::list(context, &args).await,
        Command::Eval(crate::args::eval::Command::Status(args)) | Command::EvalStatus(args) => {
            eval::status(context, &args).await
        }
        Command::Eval(crate::args::eval::Command::Delete(args)) => {
            eval::delete(context, &args).await
        }
        Command::Eval(crate::args::eval::Command::Explain(args)) => {
            eval::explain(context, &args).await
        }
        Command::Event(crate::args::event::Command::Stream(args)) => {
            event::stream(context, &args).await
        }
        Command::Deployment(crate::args::deployment::Command::List(args)) => {
            deployment::list(context, &args).await
        }
        Command::Deployment(crate::args::deployment::Command::Status(args)) => {
            deployment::status(context, &args).await
        }
        Command::Deployment(crate::args::deployment::Command::Promote(args)) => {
            deployment::update::promote(context, &args).await
        }
        Command::Deployment(crate::args::deployment::Command::Pause(args)) => {
            deployment::update::pause(context, &args).await
        }
        Command::Deployment(crate::args::deployment::Command::Resume(args)) => {
            deployment::update::resume(context, &args).await
        }
        Command::Deployment(crate::args::deployment::Command::Fail(args)) => {
            deployment::update::fail(context, &args).await
        }
        Command::Deployment(crate::args::deployment::Command::Unblock(args)) => {
            deployment::update::unblock(context, &args).await
        }
        Command::Operator(crate::args::operator::Command::Processes(args)) => {
            operator::processes(context, &args).await
        }
        Command::Operator(crate::args::operator::Command::Leaders(args)) => {
            operator::leaders(context, &args).await
        }
        Command::Monitor(args) => Box::pin(monitor::run(context, &args)).await,
        Command::Operator(crate::args::operator::Command::LogLevel(args)) => {
            operator::log_level(context, &args).await
        }
        Command::Operator(crate::args::operator::Command::Health(args)) => {
            operator::health(context, &args).await
        }
        Command::Operator(crate::args::operator::Command::Scheduler(command)) => {
            operator::scheduler(context, &command).await
        }
        Command::Operator(crate::args::operator::Command::Etcd(command)) => {
            etcd::run(context, &command).await
        }
        Command::Operator(crate::args::operator::Command::Debug(args)) => {
            Box::pin(operator::debug::run(context, &args)).await
        }
        Command::Operator(crate::args::operator::Command::Root(command)) => {
            operator::root::run(context, &command).await
        }
        Command::Operator(crate::args::operator::Command::Snapshot(command)) => {
            Box::pin(operator::snapshot::run(context, &command)).await
        }
        Command::Service(command) => services::run(context, &command).await,
        Command::Plugin(command) => plugin::run(context, &command).await,
        Command::Scaling(command) => scaling::run(context, &command).await,
        Command::System(crate::args::system::Command::Gc(args)) => system::gc(context, &args).await,
        Command::Var(command) => var::run(context, &command).await,
        Command::Volume(command) => volume::run(context, &command).await,
        Command::Status(args) => status(context, &args).await,
        Command::Version(args) => version::run(context, &args).await,
        Command::Completions(args) => completions::run(context, &args),
        Command::Complete(args) => complete::run(context, &args).await,
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
