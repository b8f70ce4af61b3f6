//! `kafila alloc …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show an allocation: where it runs, its tasks, what happened to them
    Status(Status),
    /// Print what a task wrote
    Logs(Logs),
}

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The allocation, or the start of its id
    pub id: String,
    /// Show only what the allocation is, not what happened to its tasks
    #[arg(long)]
    pub short: bool,
    /// Show full ids and times, and how the node was chosen
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila alloc status 8a3f2c1e
  kafila alloc status -verbose 8a3f2c1e
  kafila alloc status -json 8a3f2c1e | jq -r .ClientStatus

Exit codes: 0 shown; 1 no such allocation, several, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = LOGS_EXAMPLES)]
pub struct Logs {
    /// The allocation, or the start of its id; with -job the task
    #[arg(required_unless_present = "job")]
    pub id: Option<String>,
    /// The task; may be left out when there is only one
    pub task: Option<String>,
    /// Print what is written from now on as well, until the task has ended
    #[arg(short)]
    pub follow: bool,
    /// Only the end: the last 10 lines, or as -n and -c say
    #[arg(long)]
    pub tail: bool,
    /// The last N lines
    #[arg(short = 'n', value_name = "N", value_parser = super::whole::<u32>)]
    pub lines: Option<u32>,
    /// The last N bytes
    #[arg(short = 'c', value_name = "N", conflicts_with = "lines", value_parser = super::whole::<u64>)]
    pub bytes: Option<u64>,
    /// Standard error instead of standard output
    #[arg(long)]
    pub stderr: bool,
    /// Standard output, which is the default unless -f is given: then it is both
    #[arg(long)]
    pub stdout: bool,
    /// The same as the argument TASK
    #[arg(long = "task", value_name = "TASK", conflicts_with = "task")]
    pub task_flag: Option<String>,
    /// The newest running allocation of this job, instead of one named by its id
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// With -job: of this task group
    #[arg(long, value_name = "GROUP", requires = "job")]
    pub group: Option<String>,
}

const LOGS_EXAMPLES: &str = "\
Examples:
  kafila alloc logs 8a3f2c1e
  kafila alloc logs -f 8a3f2c1e server         both streams of the task server, as they grow
  kafila alloc logs -stderr -tail -n 50 8a3f2c1e
  kafila alloc logs -f -job web                of the newest running allocation of the job web

Exit codes: 0 printed; 1 no such allocation or task, or the logs could not be read.";
