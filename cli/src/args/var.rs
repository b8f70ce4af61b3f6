//! `kafila var …`

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::page::Page;
use super::values::{any_duration, duration, whole};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a variable, or replace its items
    Put(Put),
    /// Show a variable with its items
    Get(Get),
    /// List variables, without their items
    List(List),
    /// Delete a variable
    Purge(Purge),
    /// Run a command while holding the lock of a variable
    Lock(Lock),
    /// Write an example file for 'var put'
    Init(Init),
}

/// The form of a shown variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    None,
    Table,
    Json,
    Hcl,
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileForm {
    Hcl,
    Json,
}

/// The form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListForm {
    Table,
    Terse,
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = PUT_EXAMPLES)]
pub struct Put {
    /// Replace the variable whatever its modify index is
    #[arg(long, conflicts_with = "check_index")]
    pub force: bool,
    /// Store only if the modify index is N; 0: only if there is no such variable [default: the
    /// ModifyIndex of the file, else 0]
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub check_index: Option<u64>,
    /// The lock that the caller holds: KAFILA_LOCK_ID of a command of 'var lock'
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub lock_id: String,
    /// Form of the file [default: as its text looks]
    #[arg(long = "in", value_name = "FORM", value_enum)]
    pub input: Option<FileForm>,
    /// Form in which the stored variable is shown [default: none on a terminal, else json]
    #[arg(long, value_name = "FORM", value_enum)]
    pub out: Option<Form>,
    /// The variable's path, a file that describes it ('-' reads standard input), and items:
    /// NAME=@FILE reads a value from a file, NAME= leaves an item of the file out
    #[arg(required = true, value_name = "PATH | @FILE | - | NAME=VALUE")]
    pub words: Vec<String>,
}

const PUT_EXAMPLES: &str = "\
Examples:
  kafila var put app/db user=web password=@password.txt
  kafila var put -force app/db user=web password=secret    whatever is stored
  kafila var put -check-index=121 app/db user=web          only if nothing changed since
  kafila var put @app.nv.hcl                               'kafila var init' writes an example
  kafila var get -out=json app/db | kafila var put - user=other

All items are replaced. Without -force and -check-index, a stored variable is replaced only by a file
with its ModifyIndex, as 'var get -out=json' prints it.

Exit codes: 0 stored; 1 another modify index, invalid items, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = GET_EXAMPLES)]
pub struct Get {
    /// Print the value of this item alone
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    pub item: Option<String>,
    /// Form of the output [default: table on a terminal, else json]
    #[arg(long, value_name = "FORM", value_enum)]
    pub out: Option<Form>,
    /// The variable's path
    #[arg(value_parser = super::values::id)]
    pub path: String,
}

const GET_EXAMPLES: &str = "\
Examples:
  kafila var get app/db
  kafila var get -item=password app/db
  kafila var get -out=hcl app/db > app.nv.hcl

Exit codes: 0 shown; 1 no such variable or item, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    #[command(flatten)]
    pub page: Page,
    /// Form of the output [default: table on a terminal, else json]
    #[arg(long, value_name = "FORM", value_enum)]
    pub out: Option<ListForm>,
    /// List only variables whose path starts with this text
    pub prefix: Option<String>,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kafila var list
  kafila var list -out=terse app/
  kafila var list -namespace='*'

Exit codes: 0 listed; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = PURGE_EXAMPLES)]
pub struct Purge {
    /// Delete only if the modify index is N
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub check_index: Option<u64>,
    /// The lock that the caller holds: KAFILA_LOCK_ID of a command of 'var lock'
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub lock_id: String,
    /// The variable's path
    #[arg(value_parser = super::values::id)]
    pub path: String,
}

const PURGE_EXAMPLES: &str = "\
Examples:
  kafila var purge app/db
  kafila var purge -check-index=121 app/db

Exit codes: 0 deleted; 1 no such variable, another modify index, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = LOCK_EXAMPLES)]
pub struct Lock {
    /// Time without a renewal after which the lock is lost, 10s to 24h
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub ttl: Duration,
    /// Time after a loss in which the lock cannot be acquired
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = any_duration)]
    pub delay: Duration,
    /// Failed requests in a row before the command gives up; 0: no limit
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<u32>)]
    pub max_retry: u32,
    /// Run the command with /bin/sh -c; -shell=false runs it directly
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", action = clap::ArgAction::Set)]
    pub shell: bool,
    /// Say on standard error when the lock is awaited, acquired, lost and released
    #[arg(long)]
    pub verbose: bool,
    /// The variable's path, then the command and its arguments
    #[arg(value_name = "PATH COMMAND", required = true, num_args = 1.., trailing_var_arg = true)]
    pub words: Vec<String>,
}

const LOCK_EXAMPLES: &str = "\
Examples:
  kafila var lock app/leader ./migrate.sh
  kafila var lock -ttl=30s app/leader 'dump | upload'      a line of the shell
  kafila var lock -shell=false app/leader backup --all     no shell

Waits while another holds the lock. The command finds the lock's ID in KAFILA_LOCK_ID: to write the
variable, it passes it to 'var put -lock-id'. If the lock is lost, the command and its children get SIGTERM, and SIGKILL after 5s.

Exit codes: the command's own, 128 and the signal's number if a signal ended it; 126 it cannot be run, 127
there is no such program; 1 the lock was lost, or could not be acquired; 130 interrupted while waiting.";

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    /// Form of the file
    #[arg(long, value_name = "FORM", value_enum, default_value = "hcl")]
    pub out: FileForm,
    /// Print nothing
    #[arg(long)]
    pub quiet: bool,
    /// The file [default: spec.nv.hcl, or spec.nv.json]
    pub file: Option<PathBuf>,
}

const INIT_EXAMPLES: &str = "\
Examples:
  kafila var init
  kafila var init -out=json db.nv.json

Exit codes: 0 written; 1 the file exists, or cannot be written.";
