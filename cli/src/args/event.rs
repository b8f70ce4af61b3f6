//! `kafila event …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print changes in the cluster as they happen
    Stream(Stream),
}

#[derive(Debug, Args)]
#[command(after_help = STREAM_EXAMPLES)]
pub struct Stream {
    /// Topic: Job, Allocation, Evaluation, Deployment, Node, NodePool or '*'. With :KEY, only events
    /// of that key, job or deployment. Repeatable [default: all events]
    #[arg(long = "topic", value_name = "TOPIC[:KEY]")]
    pub topics: Vec<String>,
    /// First index to print, if it is still in the history [default: only new events]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = super::values::whole::<u64>)]
    pub index: u64,
    /// Print JSON, one line for each index
    #[arg(long)]
    pub json: bool,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const STREAM_EXAMPLES: &str = "\
A broken stream resumes after the last received index, without gaps and without duplicates. Events
older than the store's history are not available.

Examples:
  kafila event stream                             all events
  kafila event stream -topic Job -topic Deployment:web
  kafila event stream -topic '*:web'              all events of the job web
  kafila event stream -index 1200 -json           resume after index 1199

Exit codes: 130 stopped with Ctrl-C; 1 the index is no longer in the history, or the gateway did not
answer.";
