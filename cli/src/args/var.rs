//! `kafila var …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::page::Page;
use super::values::whole;

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
