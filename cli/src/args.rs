//! The command line: every command, its flags, its help. One file per noun.
//!
//! Flags have Nomad's names. Long ones may be typed with one dash or two; `argv` sees to that.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args, CommandFactory as _, Parser, Subcommand};

pub mod action;
pub mod alloc;
pub mod deployment;
pub mod dev;
pub mod eval;
pub mod event;
pub mod job;
pub mod monitor;
pub mod namespace;
pub mod node;
pub mod node_pool;
pub mod operator;
pub mod page;
pub mod plugin;
pub mod scaling;
pub mod service;
pub mod services;
pub mod system;
pub mod tls;
pub(crate) mod values;
pub mod var;
pub mod volume;

pub use values::Escape;

/// The root command.
#[derive(Debug, Parser)]
#[command(
    name = "kafila",
    version,
    about = "Schedules jobs on a cluster of machines",
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

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Root {
    /// Commands that call a gateway.
    #[command(flatten)]
    Client(Command),
    /// Commands that run services.
    #[command(flatten)]
    Suite(service::Command),
}

/// Returns the tree of commands as it is parsed.
///
/// Flags of commands that call a gateway are global, so clap would also list them for `kafila dev`
/// and the services, which ignore them. There they are hidden, and [`unused_global`] finds them.
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

/// Returns a global flag on the command line, for commands that ignore global flags.
pub fn unused_global(matches: &clap::ArgMatches) -> Option<&'static str> {
    const GLOBALS: [&str; 12] = [
        "address",
        "namespace",
        "stale",
        "timeout",
        "ca_cert",
        "client_cert",
        "client_key",
        "tls_server_name",
        "tls_skip_role_check",
        "tls_skip_verify",
        "no_color",
        "force_color",
    ];
    let is_typed =
        |id: &&str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    GLOBALS.into_iter().find(is_typed)
}

const EXAMPLES: &str = "\
Examples:
  kafila dev                       run a whole cluster on this machine
  kafila run web.hcl               run a job and wait until it is healthy
  kafila status web                show its state
  kafila logs -f -job web          follow its output
  kafila stop web                  stop it

Long flags take one dash or two: -detach and --detach are the same.
The help of each command has examples: kafila job run -help";

/// Flags of every command that calls a gateway.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Address of the gateway [default: KAFILA_ADDR, else NOMAD_ADDR, else http://127.0.0.1:4646]
    #[arg(long, global = true, value_name = "ADDR", help_heading = HEADING)]
    pub address: Option<String>,
    /// Namespace; '*' lists all of them. A job file that names another one is refused [default: the
    /// job file's, else KAFILA_NAMESPACE, else NOMAD_NAMESPACE, else "default"; IDs of allocations,
    /// evaluations and deployments are looked up in all namespaces]
    #[arg(long, global = true, value_name = "NAME", value_parser = values::id,
          help_heading = HEADING)]
    pub namespace: Option<String>,
    /// Read the gateway's copy of the state as it is, even while etcd does not answer. It may be old
    #[arg(long, global = true, help_heading = HEADING)]
    pub stale: bool,
    /// Timeout of each call to the gateway, for example 10s
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s",
          value_parser = values::duration, help_heading = HEADING)]
    pub timeout: Duration,
    /// Certificates of the authorities that the gateway's certificate is verified with, as PEM
    /// [default: KAFILA_CACERT, else NOMAD_CACERT, else the system's]
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    pub ca_cert: Option<PathBuf>,
    /// Client certificate, as PEM [default: KAFILA_CLIENT_CERT, else NOMAD_CLIENT_CERT]
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    pub client_cert: Option<PathBuf>,
    /// Private key of the client certificate, as PEM [default: KAFILA_CLIENT_KEY, else
    /// NOMAD_CLIENT_KEY]
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    pub client_key: Option<PathBuf>,
    /// Name that the gateway's certificate must carry [default: KAFILA_TLS_SERVER_NAME, else
    /// NOMAD_TLS_SERVER_NAME, else the host of the address]
    #[arg(long, global = true, value_name = "NAME", help_heading = HEADING)]
    pub tls_server_name: Option<String>,
    /// Accept a server that has the name but not the role of a gateway in its certificate: a proxy that ends
    /// TLS [also: KAFILA_TLS_SKIP_ROLE_CHECK]
    #[arg(long, global = true, help_heading = HEADING)]
    pub tls_skip_role_check: bool,
    /// Accept any certificate of the gateway; insecure [also: KAFILA_SKIP_VERIFY, NOMAD_SKIP_VERIFY]
    #[arg(long, global = true, help_heading = HEADING)]
    pub tls_skip_verify: bool,
    /// Disable colours [also: set NO_COLOR or KAFILA_CLI_NO_COLOR]
    #[arg(long, global = true, conflicts_with = "force_color", help_heading = HEADING)]
    pub no_color: bool,
    /// Use colours even if the output is not a terminal
    #[arg(long, global = true, help_heading = HEADING)]
    pub force_color: bool,
}

const HEADING: &str = "Global options";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run, inspect and stop jobs
    #[command(subcommand)]
    Job(job::Command),
    /// Show allocations and the output of their tasks
    #[command(subcommand)]
    Alloc(alloc::Command),
    /// Show and drain nodes, and manage node pools
    #[command(subcommand)]
    Node(node::Command),
    /// Manage namespaces
    #[command(subcommand)]
    Namespace(namespace::Command),
    /// Show and explain evaluations: the scheduler's decisions about a job
    #[command(subcommand)]
    Eval(eval::Command),
    /// Show and control deployments: the rollouts of job versions
    #[command(subcommand)]
    Deployment(deployment::Command),
    /// Stream changes in the cluster
    #[command(subcommand)]
    Event(event::Command),
    /// Print the log of a gateway, a service or a node as it is written, at any level
    Monitor(monitor::Monitor),
    /// Show the leaders of services, and configure the scheduler
    #[command(subcommand)]
    Operator(operator::Command),
    /// Show plugins of storage
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// Show scaling policies
    #[command(subcommand)]
    Scaling(scaling::Command),
    /// Show services: names and addresses of running allocations
    #[command(subcommand)]
    Service(services::Command),
    /// Run garbage collection
    #[command(subcommand)]
    System(system::Command),
    /// Create and show certificates: CAs, services, nodes, people
    #[command(subcommand)]
    Tls(tls::Command),
    /// Store and show variables: passwords and other texts, encrypted in the store
    #[command(subcommand)]
    Var(var::Command),
    /// Register and show volumes for jobs: directories of nodes, and storage systems' volumes
    #[command(subcommand)]
    Volume(volume::Command),

    // Aliases of frequent commands.
    /// Alias of: kafila job init
    Init(job::Init),
    /// Alias of: kafila job run
    Run(job::Run),
    /// Alias of: kafila job plan
    Plan(job::Plan),
    /// Show the status of a job, allocation, evaluation, deployment or node by its ID; without an ID,
    /// list jobs
    Status(Status),
    /// Alias of: kafila job stop
    Stop(job::Stop),
    /// Alias of: kafila job inspect
    Inspect(job::Inspect),
    /// Alias of: kafila job validate
    Validate(job::Validate),
    /// Alias of: kafila alloc logs
    Logs(alloc::Logs),
    /// Alias of: kafila alloc exec
    Exec(alloc::Exec),
    /// Alias of: kafila alloc fs
    Fs(alloc::fs::Fs),
    /// Alias of: kafila job action
    Action(action::Action),
    // Old names that scripts still use.
    #[command(hide = true)]
    AllocStatus(alloc::Status),
    #[command(hide = true)]
    EvalStatus(eval::Status),
    #[command(hide = true)]
    NodeStatus(node::Status),

    /// Print the version of this command or of the gateway
    #[command(after_help = VERSION_EXAMPLES)]
    Version(Version),
    /// Print a shell completion script
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(Completions),
    // For the scripts that `completions` prints.
    #[command(hide = true, after_help = COMPLETE_EXAMPLES)]
    Complete(Complete),
}

/// Finds the object with an ID, and shows it.
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// A job, or the ID (or a unique prefix) of an allocation, evaluation, deployment or node
    #[arg(value_parser = values::id)]
    pub id: Option<String>,
    /// Show full IDs and times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila status                    all jobs
  kafila status web                the job web
  kafila status 8a3f2c1e           the object whose ID starts with 8a3f2c1e

Exit codes: 0 shown; 1 not found, ambiguous, or the gateway did not answer.";

#[derive(Debug, Args)]
pub struct Version {
    /// Also print the version of the gateway
    #[arg(long)]
    pub gateway: bool,
}

const VERSION_EXAMPLES: &str = "\
Examples:
  kafila version
  kafila version -gateway";

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct Complete {
    /// The words of the line behind the command's name; the last one is to be completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

const COMPLETE_EXAMPLES: &str = "\
Examples:
  kafila complete -- job status w";

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
    fn the_command_tree_is_consistent() {
        command().debug_assert();
    }

    /// Arguments that name no object of the cluster.
    const NO_OBJECTS: [&str; 7] = [
        "file",
        "filename",
        "input_file",
        "path",
        "prefix",
        "shell",
        "words",
    ];

    #[test]
    fn no_command_takes_an_empty_id() {
        let mut root = command();
        root.build();
        let mut seen = 0;
        each_command(&root, "kafila", &mut |subcommand, name| {
            let positionals: Vec<_> = subcommand.get_positionals().collect();
            let Some(first) = positionals.first() else {
                return;
            };
            if NO_OBJECTS.contains(&first.get_id().as_str()) || subcommand.is_hide_set() {
                return;
            }
            seen += 1;
            let words = name.split(' ').map(str::to_owned);
            let empty = positionals.iter().map(|_| String::new());
            let parsed = command().try_get_matches_from(words.chain(empty));
            let error = parsed.expect_err(name).to_string();
            assert!(error.contains("the value is empty"), "{name}: {error}");
        });
        assert!(seen > 30, "{seen} commands");
    }

    #[test]
    fn an_empty_namespace_is_refused() {
        for line in [
            "kafila --namespace= status",
            "kafila job stop --namespace= web",
        ] {
            let parsed = command().try_get_matches_from(line.split(' '));
            let error = parsed.expect_err(line).to_string();
            assert!(error.contains("the value is empty"), "{line}: {error}");
        }
    }

    #[test]
    fn every_command_has_a_summary_and_an_example() {
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
}
