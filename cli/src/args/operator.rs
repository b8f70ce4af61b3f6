//! `kafila operator …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show who leads each service that has a leader
    Leaders(Leaders),
}

#[derive(Debug, Args)]
#[command(after_help = LEADERS_EXAMPLES)]
pub struct Leaders {
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const LEADERS_EXAMPLES: &str = "\
Examples:
  kafila operator leaders
  kafila operator leaders -json

Exit codes: 0 shown; 1 the gateway did not answer.";
