//! `kafila action` and `kafila job action`

use clap::Args;

use super::values;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = clap::ArgGroup::new("place").args(["job", "alloc"]).required(true).multiple(true))]
pub struct Action {
    /// The action's name, as in action "NAME" of the job file
    #[arg(value_parser = values::id)]
    pub name: String,
    /// The job; without -alloc its newest running allocation is used
    #[arg(long, value_name = "JOB", value_parser = values::id)]
    pub job: Option<String>,
    /// The allocation, or a unique prefix of its ID
    #[arg(long, value_name = "ALLOC", value_parser = values::id)]
    pub alloc: Option<String>,
    /// Without -alloc: use this task group
    #[arg(long, value_name = "GROUP", requires = "job", conflicts_with = "alloc", value_parser = values::id)]
    pub group: Option<String>,
    /// The task; optional if one task of the group has the action
    #[arg(long = "task", value_name = "TASK", value_parser = values::id)]
    pub task: Option<String>,
    /// Pass standard input on; -i=false closes it
    #[arg(short = 'i', value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", action = clap::ArgAction::Set)]
    pub interactive: bool,
    /// Run the action on a terminal [default: true if input and output are terminals]
    #[arg(short = 't', value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub terminal: Option<bool>,
    /// The escape character of a terminal session, "none" for none
    #[arg(short = 'e', value_name = "CHAR", default_value = "~", value_parser = values::escape)]
    pub escape: values::Escape,
}

const EXAMPLES: &str = "\
Examples:
  kafila action -job web flush-cache
  kafila action -job web -group app -task server flush-cache
  kafila action -alloc 8a3f2c1e migrate

The command of the action runs as 'kafila alloc exec' runs one.

Exit codes: the command's own, 128 and the signal's number if a signal ended it; 1 no such job, allocation
or action, the task does not run, or its node refuses.";
