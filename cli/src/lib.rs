//! The `kafila` command: one binary, every command.
//!
//! In reading order: [`args`] declares the command line, [`argv`] normalises it for clap, and
//! `unsupported` lists Nomad's commands that Kafila lacks. `commands` executes one command each, with
//! a `connection` to a gateway at an [`address`]. `resolve` looks up IDs and prefixes; `files` reads
//! job files and the files of node pools, namespaces and volumes; `monitor` watches evaluations,
//! deployments and drains, with `retries` while the gateway does not answer. `render` and `json` turn objects
//! into text, with the building blocks in `output`. [`exit`] has the exit codes, [`error`] the error
//! messages.
//!
//! The gateway makes all decisions about jobs, by the rules in `jobspec`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use service_kit::{Telemetry, TelemetryConfig};
use tracing::Instrument as _;

pub mod address;
mod alloc_state;
pub mod args;
pub mod argv;
mod commands;
mod connection;
mod context;
mod dev;
pub mod error;
pub mod exit;
mod files;
#[cfg(test)]
mod fixtures;
mod json;
mod monitor;
mod output;
mod render;
mod resolve;
mod retries;
mod service;
mod transport;
mod unsupported;

use args::{Cli, Command, Global, Root};
use argv::Normalised;
use context::Context;
use error::Error;
use exit::Exit;
use output::colour::Colour;

/// Runs a command line, the program's name first.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    if words
        .get(1)
        .is_some_and(|word| word == client_node::SUPERVISOR_SUBCOMMAND)
    {
        // The node agent starts a supervisor for each task: without a runtime and without clap.
        return task_drivers::supervisor::main(words.into_iter().skip(2));
    }
    if words
        .get(1)
        .is_some_and(|word| word == client_node::ARTIFACT_SUBCOMMAND)
    {
        // As above, for each download of an artifact.
        return artifact_fetch::helper::main();
    }
    if words
        .get(1)
        .is_some_and(|word| word == commands::LOCK_GUARD_SUBCOMMAND)
    {
        // As above, for each command of `kafila var lock`.
        return commands::lock_guard();
    }
    let mut root = args::command();
    root.build();
    let line = argv::normalise(words, &root);
    let matches = match args::command().try_get_matches_from(line.words.clone()) {
        Ok(matches) => matches,
        Err(error) => return usage(error, &line).into(),
    };
    match Cli::from_arg_matches(&matches) {
        Ok(Cli {
            command: Root::Suite(suite),
            ..
        }) => match args::unused_global(&matches) {
            Some(flag) => refuse_flag(flag, &line.command).into(),
            None => service::run(suite),
        },
        Ok(Cli {
            global,
            command: Root::Client(asked),
        }) => dispatch(&global, asked, &line).into(),
        Err(error) => usage(error, &line).into(),
    }
}

fn dispatch(global: &Global, command: Command, line: &Normalised) -> Exit {
    let printer = context::printer(global.no_color, global.force_color);
    match client(global, command, line) {
        Ok(exit) => exit,
        Err(error) => {
            let exit = error.exit().of(&line.command);
            if exit != Exit::BrokenPipe {
                printer.err(&shown(&error));
            }
            exit
        }
    }
}

/// Runs a command that calls the gateway, as the root of a trace.
fn client(global: &Global, command: Command, line: &Normalised) -> Result<Exit, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CLIENT_THREADS)
        .enable_all()
        .build()
        .map_err(|source| Error::Start(source.into()))?;
    let exit = runtime.block_on(async {
        let telemetry = start_telemetry()?;
        let span = tracing::info_span!("command", otel.name = line.command, otel.kind = "client");
        let exit = async {
            let context = Context::build(global, line)?;
            Box::pin(commands::run(&context, command)).await
        }
        .instrument(span)
        .await;
        telemetry.shutdown().await;
        exit
    });
    // An abandoned read of standard input must not delay the exit.
    runtime.shutdown_background();
    exit
}

/// One thread for the command, one for the export of traces.
const CLIENT_THREADS: usize = 2;

/// Logs are off by default: they are for debugging the command itself.
fn start_telemetry() -> Result<Telemetry, Error> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let config = TelemetryConfig {
        log: variable("KAFILA_LOG").unwrap_or_else(|| "off".to_owned()),
        otlp_endpoint: variable("KAFILA_OTLP_ENDPOINT"),
        ..TelemetryConfig::default()
    };
    Telemetry::start("kafila", &config).map_err(|error| Error::Start(Box::new(error)))
}

/// Returns the text of an error, with its causes where the text has none.
fn shown(error: &Error) -> String {
    match error {
        Error::Output(_) | Error::Input(_) | Error::Start(_) => {
            format!("Error: {}", service_kit::run::chain(error))
        }
        _ => error.to_string(),
    }
}

/// Prints clap's message: help or a usage error.
fn usage(mut error: clap::Error, line: &Normalised) -> Exit {
    let (exit, is_help) = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => (Exit::Success, true),
        ErrorKind::InvalidSubcommand => (Exit::UnknownCommand, false),
        _ => (Exit::Failure.of(&line.command), false),
    };
    let printer = context::printer(false, false);
    let command = &line.command;
    let advice = format!("For additional help try '{command} -help'");
    if let Some(message) = unsupported(&error, line) {
        printer.err(&format!("{message}\n\n{advice}"));
        return exit;
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        suggest(&mut error, line);
    }
    if error.kind() == ErrorKind::UnknownArgument {
        // Clap suggests to pass the unknown flag as an argument, which is never meant.
        error.remove(ContextKind::Suggested);
    }
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
        // A closed pipe needs no error after help.
        let _ = printer.out(&text);
    } else {
        printer.err(&text.replace("For more information, try '--help'.", &advice));
    }
    exit
}

/// Adds the command of similar spelling where clap finds none: it misses swapped letters.
fn suggest(error: &mut clap::Error, line: &Normalised) {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return;
    }
    let mut root = args::command();
    root.build();
    let mut parent = &root;
    for name in line.command.split(' ').skip(1) {
        match parent.find_subcommand(name) {
            Some(child) => parent = child,
            None => return,
        }
    }
    let names = parent
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let names = names.map(clap::Command::get_name);
    if let Some(name) = suggest::nearest(wrong, names) {
        let name = name.to_owned();
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(vec![name]),
        );
    }
}

/// Returns the message for a command or flag that only Nomad has, and for other errors whose text by
/// clap misleads.
fn unsupported(error: &clap::Error, line: &Normalised) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => unsupported::of_command(&line.words),
        // clap's own text, "no more were expected", sounds like a wrong number of values.
        ErrorKind::TooManyValues => switch_with_value(error),
        ErrorKind::InvalidValue => empty_value(error, &line.words),
        ErrorKind::UnknownArgument => match error.get(ContextKind::InvalidArg)? {
            ContextValue::String(flag) => unsupported::of_flag(&line.command, flag),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the message for a flag without a value that was given one, as in `-detach=maybe`.
fn switch_with_value(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let flag = text(ContextKind::InvalidArg)?.strip_prefix("--")?;
    let value = text(ContextKind::InvalidValue)?;
    Some(format!(
        "The flag -{flag} takes no value, but was given {value:?}: write -{flag}, or leave it out."
    ))
}

/// Returns the message for an empty value, as in `-data-dir=`: clap's own text says that there is none.
/// `None` if there is none.
fn empty_value(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg)?;
    let is_empty = |word: &OsString| word.is_empty() || word.as_encoded_bytes().ends_with(b"=");
    let is_given = words.iter().any(is_empty);
    // Clap lists the values of an argument that has a list of them.
    let listed = error.get(ContextKind::ValidValue);
    let has_list = matches!(listed, Some(ContextValue::Strings(values)) if !values.is_empty());
    if !is_given || has_list || !text(ContextKind::InvalidValue)?.is_empty() {
        return None;
    }
    let problem = args::values::EMPTY;
    Some(format!(
        "error: invalid value '' for '{argument}': {problem}"
    ))
}

/// Refuses a global flag for a command that does not call a gateway.
fn refuse_flag(flag: &str, command: &str) -> Exit {
    let flag = flag.replace('_', "-");
    context::printer(false, false).err(&format!(
        "error: -{flag} has no effect on '{command}', which calls no gateway. Leave it out.\n\n\
         For additional help try '{command} -help'"
    ));
    Exit::Failure
}
