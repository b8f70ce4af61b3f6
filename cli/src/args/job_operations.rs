//! `kafila job …`: what is done with a job beside running and stopping it.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = DISPATCH_EXAMPLES)]
pub struct Dispatch {
    /// The parameterized job, or the start of its id
    pub id: String,
    /// A file with the payload; - reads standard input
    #[arg(value_name = "FILE")]
    pub payload: Option<PathBuf>,
    /// A key that the job asks for, and its value; repeatable
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub meta: Vec<String>,
    /// Dispatches with the same token make one child, as long as it is stored
    #[arg(long, value_name = "TOKEN")]
    pub idempotency_token: Option<String>,
    /// Stands in the child's id, before the time
    #[arg(long, value_name = "TEXT")]
    pub id_prefix_template: Option<String>,
    /// The priority of the child, 1 to 100 [default: the job's]
    #[arg(long, value_name = "N", value_parser = super::priority)]
    pub priority: Option<u32>,
    /// Return once the child is stored, without watching it start
    #[arg(long)]
    pub detach: bool,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
}

const DISPATCH_EXAMPLES: &str = "\
Examples:
  kafila job dispatch -meta input=a.csv convert
  kafila job dispatch -meta input=a.csv convert settings.json
  make-settings | kafila job dispatch -meta input=a.csv convert -
  kafila job dispatch -idempotency-token \"$CI_JOB_ID\" -detach convert

Exit codes: 0 placed; 1 an error; 2 not everything could be placed; 130 detached with Ctrl-C, the
child goes on.";

#[derive(Debug, Args)]
#[command(after_help = SCALE_EXAMPLES)]
pub struct Scale {
    /// The job, or the start of its id
    pub id: String,
    /// The task group, which may be left out if there is only one, and its count
    #[arg(value_name = "[GROUP] COUNT", required = true, num_args = 1..=2, allow_negative_numbers = true)]
    pub group_and_count: Vec<String>,
    /// Scale the job only if its JobModifyIndex is N
    #[arg(long, value_name = "N", value_parser = super::whole::<u64>)]
    pub check_index: Option<u64>,
    /// Return once the job is stored, without watching it change
    #[arg(long)]
    pub detach: bool,
    /// Show full ids, and the allocations of the deployment
    #[arg(long)]
    pub verbose: bool,
}

const SCALE_EXAMPLES: &str = "\
Examples:
  kafila job scale web 5                       a job of one group
  kafila job scale web server 5
  kafila job scale -check-index 17 web 5       only if nobody changed it since

Exit codes: 0 placed, and the deployment (if there is one) successful; 1 an error, or the
deployment failed; 2 not everything could be placed; 130 detached with Ctrl-C, the job goes on.";

#[derive(Debug, Args)]
#[command(after_help = EVENTS_EXAMPLES)]
pub struct ScalingEvents {
    /// The job, or the start of its id
    pub id: String,
    /// Show errors, messages and full evaluation ids as well
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, all that is known of each
    #[arg(long)]
    pub json: bool,
}

const EVENTS_EXAMPLES: &str = "\
Examples:
  kafila job scaling-events web
  kafila job scaling-events -verbose web       who said what
  kafila job scaling-events -json web | jq .[].Message

Exit codes: 0 shown; 1 no such job, several, or the gateway did not answer.";

#[derive(Debug, Subcommand)]
pub enum Periodic {
    /// Launch a periodic job now, whether it overlaps or not
    Force(Force),
}

#[derive(Debug, Args)]
#[command(after_help = FORCE_EXAMPLES)]
pub struct Force {
    /// The periodic job, or the start of its id
    pub id: String,
    /// Return once the child is stored, without watching it start
    #[arg(long)]
    pub detach: bool,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
}

const FORCE_EXAMPLES: &str = "\
Examples:
  kafila job periodic force backup
  kafila job periodic force -detach backup

Exit codes: 0 placed; 1 an error; 2 not everything could be placed; 130 detached with Ctrl-C, the
child goes on.";

#[derive(Debug, Args)]
#[command(after_help = EVAL_EXAMPLES)]
pub struct Eval {
    /// The job, or the start of its id
    pub id: String,
    /// Replace failed allocations, whatever their policy says
    #[arg(long)]
    pub force_reschedule: bool,
    /// Return once the evaluation is stored, without watching it
    #[arg(long)]
    pub detach: bool,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
}

const EVAL_EXAMPLES: &str = "\
Examples:
  kafila job eval web
  kafila job eval -force-reschedule web        try again what has given up

Exit codes: 0 placed; 1 an error, or the job's deployment has failed; 2 not everything could be
placed; 130 detached with Ctrl-C, the job goes on.";

#[derive(Debug, Args)]
#[command(after_help = ALLOCS_EXAMPLES)]
pub struct Allocs {
    /// The job, or the start of its id
    pub id: String,
    /// Show allocations of former jobs of the same id as well
    #[arg(long)]
    pub all: bool,
    /// Show full ids and times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const ALLOCS_EXAMPLES: &str = "\
Examples:
  kafila job allocs web
  kafila job allocs -json web | jq -r .[].ID

Exit codes: 0 shown; 1 no such job, several, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = DEPLOYMENTS_EXAMPLES)]
pub struct Deployments {
    /// The job, or the start of its id
    pub id: String,
    /// Show only the newest one
    #[arg(long)]
    pub latest: bool,
    /// Show deployments of former jobs of the same id as well
    #[arg(long)]
    pub all: bool,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const DEPLOYMENTS_EXAMPLES: &str = "\
Examples:
  kafila job deployments web
  kafila job deployments -latest web

Exit codes: 0 shown; 1 no such job, several, or the gateway did not answer.";
