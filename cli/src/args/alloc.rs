//! `kafila alloc …`

pub mod fs;
pub mod signal;
pub mod stats;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show an allocation: its node, tasks and task events
    Status(Status),
    /// Print the output of a task
    Logs(Logs),
    /// List the files of an allocation, and print one
    Fs(fs::Fs),
    /// Run a command in a running task
    Exec(Exec),
    /// Send a signal to tasks of an allocation
    Signal(signal::Signal),
    /// Measure what the tasks of an allocation use
    Stats(stats::Stats),
    /// Restart tasks of an allocation in place
    Restart(Restart),
    /// Stop an allocation; the scheduler replaces it
    Stop(Stop),
    /// Show the states of an allocation's service checks
    Checks(Checks),
}

#[derive(Debug, Args)]
#[command(after_help = CHECKS_EXAMPLES)]
pub struct Checks {
    /// The allocation, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Show exact times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const CHECKS_EXAMPLES: &str = "\
Examples:
  kafila alloc checks 8a3f2c1e

Exit codes: 0 shown, also without checks; 1 no such allocation, ambiguous, or its node did not answer.";

#[derive(Debug, Args)]
#[command(after_help = EXEC_EXAMPLES)]
pub struct Exec {
    /// The task; optional if there is only one
    #[arg(long = "task", value_name = "TASK", value_parser = super::values::id)]
    pub task: Option<String>,
    /// Use the newest running allocation of this job
    #[arg(long, value_name = "JOB", value_parser = super::values::id)]
    pub job: Option<String>,
    /// With -job: use this task group
    #[arg(long, value_name = "GROUP", requires = "job", value_parser = super::values::id)]
    pub group: Option<String>,
    /// Pass standard input on; -i=false closes it
    #[arg(short = 'i', value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", action = clap::ArgAction::Set)]
    pub interactive: bool,
    /// Run the command on a terminal [default: true if input and output are terminals]
    #[arg(short = 't', value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub terminal: Option<bool>,
    /// The escape character of a terminal session, "none" for none: typed at the start of a line, with a
    /// dot after it, it ends the session
    #[arg(short = 'e', value_name = "CHAR", default_value = "~", value_parser = super::values::escape)]
    pub escape: super::values::Escape,
    /// The allocation, or a unique prefix of its ID (not with -job), then the command and its arguments
    #[arg(value_name = "ALLOC COMMAND", required = true, num_args = 1.., trailing_var_arg = true)]
    pub words: Vec<String>,
}

const EXEC_EXAMPLES: &str = "\
Examples:
  kafila alloc exec 8a3f2c1e sh                      a shell, if there is one task
  kafila alloc exec -task server 8a3f2c1e ps -ef
  kafila alloc exec -job web cat /etc/hosts          newest running allocation of the job web
  kafila alloc exec 8a3f2c1e sh -c 'cat >f' <file    standard input until its end

The command runs as the task's user, in its directory or container, with its variables and limits. It is
killed when this command ends.

Exit codes: the command's own, 128 and the signal's number if a signal ended it; 126 it cannot be run, 127
there is no such program; 1 no such allocation or task, the task does not run, or its node refuses.";

#[derive(Debug, Args)]
#[command(after_help = RESTART_EXAMPLES)]
pub struct Restart {
    /// The allocation, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// The task [default: all running tasks]
    #[arg(value_parser = super::values::id)]
    pub task: Option<String>,
    /// Same as the argument TASK
    #[arg(long = "task", value_name = "TASK", conflicts_with = "task", value_parser = super::values::id)]
    pub task_flag: Option<String>,
    /// Restart all tasks, also those that have ended, in the order of a first start
    #[arg(long, conflicts_with_all = ["task", "task_flag"])]
    pub all_tasks: bool,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const RESTART_EXAMPLES: &str = "\
Examples:
  kafila alloc restart 8a3f2c1e                all running tasks
  kafila alloc restart 8a3f2c1e server         one task
  kafila alloc restart -all-tasks 8a3f2c1e     also tasks that have ended

The tasks restart on the same node, in the same directory; the restart policy does not count it.

Exit codes: 0 restarted; 1 no such allocation or task, it does not run, or its node cannot be reached.";

#[derive(Debug, Args)]
#[command(after_help = STOP_EXAMPLES)]
pub struct Stop {
    /// The allocation, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Return once the stop is stored, without watching the replacement
    #[arg(long)]
    pub detach: bool,
    /// Stop the tasks at once, without the shutdown_delay of the group and its tasks
    #[arg(long)]
    pub no_shutdown_delay: bool,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const STOP_EXAMPLES: &str = "\
Examples:
  kafila alloc stop 8a3f2c1e
  kafila alloc stop -detach 8a3f2c1e
  kafila alloc stop -no-shutdown-delay 8a3f2c1e    also ends a delay in progress

The job still needs as many allocations as before, so the scheduler places a replacement, on any node
that fits. 'kafila job stop' stops a job, 'kafila job scale' changes a count.

Exit codes: 0 stopped and replaced; 1 an error; 2 the replacement could not be placed; 130 stopped
watching with Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The allocation, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Leave out task events
    #[arg(long)]
    pub short: bool,
    /// Measure what the running tasks use
    #[arg(long, conflicts_with = "json")]
    pub stats: bool,
    /// Show full IDs, times and placement scores
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila alloc status 8a3f2c1e
  kafila alloc status -verbose 8a3f2c1e
  kafila alloc status -stats 8a3f2c1e          with cpu and memory of its tasks
  kafila alloc status -json 8a3f2c1e | jq -r .ClientStatus

Exit codes: 0 shown; 1 no such allocation, ambiguous, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = LOGS_EXAMPLES)]
pub struct Logs {
    /// The allocation, or a unique prefix of its ID; with -job: the task
    #[arg(required_unless_present = "job", value_parser = super::values::id)]
    pub id: Option<String>,
    /// The task; optional if there is only one
    #[arg(value_parser = super::values::id)]
    pub task: Option<String>,
    /// Follow the output until the task ends
    #[arg(short)]
    pub follow: bool,
    /// Print only the end: 10 lines, or as set by -n or -c
    #[arg(long)]
    pub tail: bool,
    /// Print the last N lines
    #[arg(short = 'n', value_name = "N", value_parser = super::values::whole::<u32>)]
    pub lines: Option<u32>,
    /// Print the last N bytes
    #[arg(short = 'c', value_name = "N", conflicts_with = "lines", value_parser = super::values::whole::<u64>)]
    pub bytes: Option<u64>,
    /// Print standard error instead of standard output
    #[arg(long)]
    pub stderr: bool,
    /// Print standard output; the default, except with -f, which prints both streams
    #[arg(long)]
    pub stdout: bool,
    /// Same as the argument TASK
    #[arg(long = "task", value_name = "TASK", conflicts_with = "task", value_parser = super::values::id)]
    pub task_flag: Option<String>,
    /// Use the newest running allocation of this job
    #[arg(long, value_name = "JOB", value_parser = super::values::id)]
    pub job: Option<String>,
    /// With -job: use this task group
    #[arg(long, value_name = "GROUP", requires = "job", value_parser = super::values::id)]
    pub group: Option<String>,
}

const LOGS_EXAMPLES: &str = "\
Examples:
  kafila alloc logs 8a3f2c1e
  kafila alloc logs -f 8a3f2c1e server         follow both streams of the task server
  kafila alloc logs -stderr -tail -n 50 8a3f2c1e
  kafila alloc logs -f -job web                newest running allocation of the job web

Exit codes: 0 printed; 1 no such allocation or task, or the logs are unavailable.";
