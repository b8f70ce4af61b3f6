//! `kafila alloc …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show an allocation: its node, tasks and task events
    Status(Status),
    /// Print the output of a task
    Logs(Logs),
}

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The allocation, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Leave out task events
    #[arg(long)]
    pub short: bool,
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
