//! The command line: every command, its flags, its help. One file per noun.
//!
//! Flags have Nomad's names. Long ones may be typed with one dash or two; `argv` sees to that.

use std::net::SocketAddr;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use clap::{Arg, Args, CommandFactory as _, Parser, Subcommand};

pub mod alloc;
pub mod deployment;
pub mod deployment_update;
pub mod dev;
pub mod drain;
pub mod eval;
pub mod event;
pub mod job;
pub mod job_operations;
pub mod job_versions;
pub mod namespace;
pub mod node;
pub mod node_pool;
pub mod operator;
pub mod scaling;
pub mod service;
pub mod system;
pub mod volume;

/// What `kafila` itself is told, before a command.
#[derive(Debug, Parser)]
#[command(
    name = "kafila",
    version,
    about = "Runs jobs on machines: one job file, one scheduler, programs as they are",
    after_help = EXAMPLES,
    args_override_self = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Root,
}

/// Everything that can follow `kafila`.
#[derive(Debug, Subcommand)]
pub enum Root {
    /// Asks a gateway.
    #[command(flatten)]
    Client(Command),
    /// Is (a part of) the suite itself.
    #[command(flatten)]
    Suite(service::Command),
}

/// Returns the tree of commands as it is parsed.
///
/// Flags for commands that ask a gateway are global, so clap would list them with `kafila dev` and
/// the services too, where they do nothing: there they are hidden, and [`useless`] finds them.
pub fn command() -> clap::Command {
    let mut root = Cli::command();
    let is_global = |arg: &&Arg| arg.is_global_set();
    let globals: Vec<Arg> = root.get_arguments().filter(is_global).cloned().collect();
    let names = root.get_subcommands().map(|it| it.get_name().to_owned());
    let suite: Vec<String> = names
        .filter(|it| service::Command::has_subcommand(it))
        .collect();
    for name in suite {
        let hidden = globals.iter().map(|arg| arg.clone().hide(true));
        root = root.mut_subcommand(name, |command| command.args(hidden));
    }
    root
}

/// Returns the global flag that was typed, if any: for commands that have no use for one.
pub fn useless(matches: &clap::ArgMatches) -> Option<&'static str> {
    const GLOBALS: [&str; 5] = ["address", "namespace", "timeout", "no_color", "force_color"];
    let is_typed =
        |id: &&str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    GLOBALS.into_iter().find(is_typed)
}

const EXAMPLES: &str = "\
Examples:
  kafila dev                       start everything on this machine
  kafila run web.hcl               run a job and watch it become healthy
  kafila status web                what became of it
  kafila logs -f -job web          its output, as it is written
  kafila stop web                  stop it

Long flags may be written with one dash or two: -detach is --detach.
Every command has examples: kafila job run -help";

/// Flags that every command takes.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// The gateway to ask [default: KAFILA_ADDR, else NOMAD_ADDR, else http://127.0.0.1:4646]
    #[arg(long, global = true, value_name = "ADDR", help_heading = HEADING)]
    pub address: Option<String>,
    /// The namespace to work in; '*' lists all; an error where a job file names another [default:
    /// the job file's own, else KAFILA_NAMESPACE, else NOMAD_NAMESPACE, else default; for ids of
    /// allocations, evaluations and deployments: any]
    #[arg(long, global = true, value_name = "NAME", help_heading = HEADING)]
    pub namespace: Option<String>,
    /// How long one call to the gateway may take, as in 10s
    #[arg(long, global = true, value_name = "SPAN", default_value = "30s",
          value_parser = span, help_heading = HEADING)]
    pub timeout: Duration,
    /// No colours [also: NO_COLOR or KAFILA_CLI_NO_COLOR set to anything]
    #[arg(long, global = true, conflicts_with = "force_color", help_heading = HEADING)]
    pub no_color: bool,
    /// Colours even where the output is no terminal
    #[arg(long, global = true, help_heading = HEADING)]
    pub force_color: bool,
}

const HEADING: &str = "Global options";

/// The least that a call may take: less is over before anything is sent, and messages about
/// timeouts are in milliseconds.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

/// Reads a span of time in which something can happen.
fn span(text: &str) -> Result<Duration, String> {
    let span = jobspec::parse_duration(text).map_err(|error| error.to_string())?;
    if span < MIN_TIMEOUT {
        return Err("it has to be 1ms or more".to_owned());
    }
    Ok(span)
}

/// Reads a whole number.
fn whole<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseIntError| {
        let problem = match error.kind() {
            IntErrorKind::PosOverflow => "that is more than there can be: want less",
            _ => "want a whole number, 0 or more, as in 3",
        };
        problem.to_owned()
    })
}

/// Reads the priority of a job or an evaluation.
fn priority(text: &str) -> Result<u32, String> {
    let priority = text.parse().ok().filter(|it| (1..=100).contains(it));
    priority.ok_or_else(|| "want a whole number from 1 to 100, as in 50".to_owned())
}

/// Reads where to listen.
fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "want an IP address and a port, as in 127.0.0.1:5646".to_owned())
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run, watch, inspect and stop jobs
    #[command(subcommand)]
    Job(job::Command),
    /// See allocations and what their tasks print
    #[command(subcommand)]
    Alloc(alloc::Command),
    /// See the machines that run allocations
    #[command(subcommand)]
    Node(node::Command),
    /// See, make and delete namespaces
    #[command(subcommand)]
    Namespace(namespace::Command),
    /// See evaluations: why the scheduler looked at a job, and what came of it
    #[command(subcommand)]
    Eval(eval::Command),
    /// See deployments: the rollouts of job versions
    #[command(subcommand)]
    Deployment(deployment::Command),
    /// See what changes, as it changes
    #[command(subcommand)]
    Event(event::Command),
    /// See how the suite itself is doing
    #[command(subcommand)]
    Operator(operator::Command),
    /// See how groups may be scaled
    #[command(subcommand)]
    Scaling(scaling::Command),
    /// Tidy up
    #[command(subcommand)]
    System(system::Command),
    /// See and register directories of nodes that jobs may use
    #[command(subcommand)]
    Volume(volume::Command),

    // Other words for the commands that are typed most.
    /// The same as: kafila job run
    Run(job::Run),
    /// The same as: kafila job plan
    Plan(job::Plan),
    /// Job status without an argument; with one, the status of whatever has that id
    Status(Status),
    /// The same as: kafila job stop
    Stop(job::Stop),
    /// The same as: kafila job inspect
    Inspect(job::Inspect),
    /// The same as: kafila job validate
    Validate(job::Validate),
    /// The same as: kafila alloc logs
    Logs(alloc::Logs),
    // Names from long ago that scripts still use.
    #[command(hide = true)]
    AllocStatus(alloc::Status),
    #[command(hide = true)]
    EvalStatus(eval::Status),
    #[command(hide = true)]
    NodeStatus(node::Status),

    /// Print the version of this command, and of the gateway
    #[command(after_help = VERSION_EXAMPLES)]
    Version(Version),
    /// Print a script that completes commands in a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(Completions),
}

/// Finds out what an id belongs to, and shows it.
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// A job, or the id (or the start of one) of an allocation, evaluation, deployment or node
    pub id: Option<String>,
    /// Show full ids and times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila status                    all jobs
  kafila status web                the job web
  kafila status 8a3f2c1e           whatever has an id that begins so

Exit codes: 0 shown; 1 nothing found, several found, or the gateway did not answer.";

#[derive(Debug, Args)]
pub struct Version {
    /// Ask the gateway for its version as well
    #[arg(long)]
    pub gateway: bool,
}

const VERSION_EXAMPLES: &str = "\
Examples:
  kafila version
  kafila version -gateway";

#[derive(Debug, Args)]
pub struct Completions {
    /// Which shell to write for
    pub shell: clap_complete::Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  kafila completions bash > ~/.local/share/bash-completion/completions/kafila
  kafila completions zsh > ~/.zfunc/_kafila
  kafila completions fish > ~/.config/fish/completions/kafila.fish";

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with every command that can be run, and its full name.
    fn each_command(
        command: &clap::Command,
        name: &str,
        check: &mut dyn FnMut(&clap::Command, &str),
    ) {
        if command.get_name() == "help" {
            return;
        }
        if !command.has_subcommands() {
            check(command, name);
        }
        for subcommand in command.get_subcommands() {
            let name = format!("{name} {}", subcommand.get_name());
            each_command(subcommand, &name, check);
        }
    }

    #[test]
    fn the_tree_of_commands_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does_and_has_an_example() {
        let mut root = command();
        root.build();
        let mut seen = 0;
        each_command(&root, "kafila", &mut |command, name| {
            seen += 1;
            let examples = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            if !command.is_hide_set() {
                assert!(command.get_about().is_some(), "{name} says what it does");
            }
            assert!(examples.contains("  kafila "), "{name} has an example");
        });
        assert!(seen > 20, "{seen} commands");
    }

    #[test]
    fn numbers_and_addresses_say_what_they_should_be() {
        assert_eq!(whole::<u64>("3"), Ok(3));
        for text in ["x", "-1", "", "1.5"] {
            assert!(
                whole::<u64>(text).unwrap_err().contains("as in 3"),
                "{text}"
            );
        }
        assert_eq!(priority("100"), Ok(100));
        for text in ["0", "101", "200", "high"] {
            assert!(priority(text).unwrap_err().contains("1 to 100"), "{text}");
        }
        assert!(listen("127.0.0.1:5646").is_ok());
        assert!(listen(":5646").unwrap_err().contains("127.0.0.1:5646"));
    }

    #[test]
    fn a_timeout_is_a_span_that_lasts() {
        assert_eq!(span("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(span("1ms").unwrap(), Duration::from_millis(1));
        for short in ["0s", "1ns", "999us"] {
            assert!(span(short).unwrap_err().contains("1ms or more"), "{short}");
        }
        assert!(span("10").unwrap_err().contains("duration"));
    }
}
