//! `kafila alloc signal`

use clap::Args;

use crate::args::values;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Signal {
    /// The allocation, or a unique prefix of its ID
    #[arg(value_parser = values::id)]
    pub id: String,
    /// The task [default: all running tasks]
    #[arg(value_parser = values::id)]
    pub task: Option<String>,
    /// The signal, with or without "SIG"
    #[arg(short = 's', value_name = "SIGNAL", default_value = "SIGKILL", value_parser = values::id)]
    pub signal: String,
    /// Same as the argument TASK
    #[arg(long = "task", value_name = "TASK", conflicts_with = "task", value_parser = values::id)]
    pub task_flag: Option<String>,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  kafila alloc signal -s HUP 8a3f2c1e server    the main process of one task
  kafila alloc signal -s USR1 8a3f2c1e          all running tasks
  kafila alloc signal 8a3f2c1e                  SIGKILL: the restart policy restarts the tasks

Exit codes: 0 sent; 1 no such allocation, task or signal, the task does not run, or its driver or node
refuses.";
