//! `kafila service …`

use clap::{Args, Subcommand};

use super::page::Page;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the services of running allocations
    List(List),
    /// Show the registrations of a service: its addresses
    Info(Info),
    /// Delete a registration
    Delete(Delete),
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    #[command(flatten)]
    pub page: Page,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kafila service list
  kafila service list -namespace='*'

Exit codes: 0 listed; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INFO_EXAMPLES)]
pub struct Info {
    /// Name of the service
    #[arg(value_parser = super::values::id)]
    pub name: String,
    #[command(flatten)]
    pub page: Page,
    /// Show full IDs, and the ID of each registration
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const INFO_EXAMPLES: &str = "\
Examples:
  kafila service info web-api
  kafila service info -verbose web-api

Exit codes: 0 shown, also without registrations; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    /// Name of the service
    #[arg(value_parser = super::values::id)]
    pub name: String,
    /// The registration: its whole ID, as 'kafila service info -verbose' shows it
    #[arg(value_parser = super::values::id)]
    pub id: String,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kafila service delete web-api _nomad-task-8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234-group-web-web-api-http

The node of the allocation registers the service again when its task starts again.

Exit codes: 0 deleted; 1 no such registration, or the gateway did not answer.";
