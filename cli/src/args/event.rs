//! `kafila event …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print every change in the cluster as it happens
    Stream(Stream),
}

#[derive(Debug, Args)]
#[command(after_help = STREAM_EXAMPLES)]
pub struct Stream {
    /// Job, Allocation, Evaluation, Deployment, Node, NodePool or '*', with :KEY after it only what
    /// has this key, job or deployment; several times: any of them [default: everything]
    #[arg(long = "topic", value_name = "TOPIC[:KEY]")]
    pub topics: Vec<String>,
    /// Begin with what was written at this index, if it is still known [default: what comes now]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = super::whole::<u64>)]
    pub index: u64,
    /// Print JSON, a line for each index, for programs
    #[arg(long)]
    pub json: bool,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
}

const STREAM_EXAMPLES: &str = "\
A stream that breaks is taken up again after the last index that came, so nothing is told twice and
nothing is left out. What is older than the store's history cannot be told.

Examples:
  kafila event stream                             everything
  kafila event stream -topic Job -topic Deployment:web
  kafila event stream -topic '*:web'              what concerns the job web
  kafila event stream -index 1200 -json           go on where index 1199 was the last

Exit codes: 130 interrupted; 1 the index is no longer known, or the gateway did not answer.";
