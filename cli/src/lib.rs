//! The `kafila` command: one binary, every command.
//!
//! In reading order: [`args`] is what can be typed, [`argv`] makes it what clap reads; `commands`
//! carries out one command each, with a `connection` to a gateway at an [`address`]; `resolve`
//! finds what an id means, `jobfile` reads job files; `monitor` watches evaluations and
//! deployments; `render` and `json` turn objects into text over the pieces in `output`; [`exit`]
//! has the exit codes, [`error`] what users read when something goes wrong.
//!
//! Nothing here decides anything about jobs: the gateway does, with the rules that `jobspec` has.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use service_kit::{Telemetry, TelemetryConfig};
use tracing::Instrument as _;

pub mod address;
pub mod args;
mod argv;
mod commands;
mod connection;
mod context;
mod dev;
mod diagnostic;
pub mod error;
pub mod exit;
#[cfg(test)]
mod fixtures;
mod jobfile;
mod json;
mod monitor;
mod output;
mod render;
mod resolve;
mod service;

use args::{Cli, Command, Global, Root};
use argv::Normalised;
use context::Context;
use error::Error;
use exit::Exit;
use output::colour::Colour;

/// Runs the command that `words` spell, the program's name first.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    if words
        .get(1)
        .is_some_and(|word| word == client_node::SUPERVISOR_SUBCOMMAND)
    {
        // Started by the agent, once for each task: no runtime, and no word of clap's.
        return task_drivers::supervisor::main(words.into_iter().skip(2));
    }
    let mut root = Cli::command();
    root.build();
    let Normalised { words, command } = argv::normalise(words, &root);
    match Cli::try_parse_from(words) {
        Ok(Cli {
            command: Root::Suite(suite),
            ..
        }) => service::run(suite),
        Ok(Cli {
            global,
            command: Root::Client(asked),
        }) => dispatch(&global, asked, &command).into(),
        Err(error) => usage(&error, &command).into(),
    }
}

fn dispatch(global: &Global, command: Command, name: &str) -> Exit {
    let printer = context::printer(global.no_color, global.force_color);
    match client(global, command, name) {
        Ok(exit) => exit,
        Err(error) => {
            let exit = error.exit().of(name);
            if exit != Exit::BrokenPipe {
                printer.err(&shown(&error));
            }
            exit
        }
    }
}

/// Runs a command that asks the gateway, as the root of a trace.
fn client(global: &Global, command: Command, name: &str) -> Result<Exit, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CLIENT_THREADS)
        .enable_all()
        .build()
        .map_err(|source| Error::Start(source.into()))?;
    let exit = runtime.block_on(async {
        let telemetry = start_telemetry()?;
        let span = tracing::info_span!("command", otel.name = name, otel.kind = "client");
        let exit = async {
            let context = Context::build(global)?;
            Box::pin(commands::run(&context, command)).await
        }
        .instrument(span)
        .await;
        telemetry.shutdown().await;
        exit
    });
    // A read of standard input that nobody waits for any more must not hold up the end.
    runtime.shutdown_background();
    exit
}

/// One for the command, one for the export of traces.
const CLIENT_THREADS: usize = 2;

/// Commands say what users need to know; logs are for those who look for a fault in the command.
fn start_telemetry() -> Result<Telemetry, Error> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let config = TelemetryConfig {
        log: variable("KAFILA_LOG").unwrap_or_else(|| "off".to_owned()),
        otlp_endpoint: variable("KAFILA_OTLP_ENDPOINT"),
        ..TelemetryConfig::default()
    };
    Telemetry::start("kafila", &config).map_err(|error| Error::Start(Box::new(error)))
}

/// Returns an error with its causes, unless its text has them.
fn shown(error: &Error) -> String {
    match error {
        Error::Output(_) | Error::Input(_) | Error::Start(_) => {
            format!("Error: {}", service_kit::run::chain(error))
        }
        _ => error.to_string(),
    }
}

/// Prints what clap has to say: help where it was asked for, else what is wrong.
fn usage(error: &clap::Error, command: &str) -> Exit {
    let (exit, is_help) = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => (Exit::Success, true),
        ErrorKind::InvalidSubcommand => (Exit::UnknownCommand, false),
        _ => (Exit::Failure.of(command), false),
    };
    let printer = context::printer(false, false);
    let colour = if is_help {
        printer.colour
    } else {
        printer.colour_err
    };
    let text = match colour {
        Colour::On => error.render().ansi().to_string(),
        Colour::Off => error.render().to_string(),
    };
    if is_help {
        // Nobody reads on: there is nothing to add to that.
        let _ = printer.out(&text);
    } else {
        let advice = format!("For additional help try '{command} -help'");
        printer.err(&text.replace("For more information, try '--help'.", &advice));
    }
    exit
}
