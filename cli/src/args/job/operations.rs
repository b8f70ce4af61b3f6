//! `kafila job dispatch`, `scale`, `scaling-events`, `periodic`, `eval`, `allocs` and `deployments`.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = DISPATCH_EXAMPLES)]
pub struct Dispatch {
    /// The parameterized job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// File with the payload; '-' reads standard input
    #[arg(value_name = "FILE")]
    pub payload: Option<PathBuf>,
    /// Metadata key that the job declares, and its value; repeatable
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub meta: Vec<String>,
    /// Idempotency token: dispatches with the same token create one child while it is stored
    #[arg(long, value_name = "TOKEN")]
    pub idempotency_token: Option<String>,
    /// Text in the child's ID, before the timestamp
    #[arg(long, value_name = "TEXT")]
    pub id_prefix_template: Option<String>,
    /// Priority of the child, 1 to 100 [default: the job's]
    #[arg(long, value_name = "N", value_parser = crate::args::values::priority)]
    pub priority: Option<u32>,
    /// Return once the child is stored, without watching it
    #[arg(long)]
    pub detach: bool,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const DISPATCH_EXAMPLES: &str = "\
Examples:
  kafila job dispatch -meta input=a.csv convert
  kafila job dispatch -meta input=a.csv convert settings.json
  make-settings | kafila job dispatch -meta input=a.csv convert -
  kafila job dispatch -idempotency-token \"$CI_JOB_ID\" -detach convert

Exit codes: 0 placed; 1 an error; 2 some allocations could not be placed; 130 stopped watching with
Ctrl-C, the child continues.";

#[derive(Debug, Args)]
#[command(after_help = SCALE_EXAMPLES)]
pub struct Scale {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// The task group (optional if there is only one) and its new count
    #[arg(value_name = "[GROUP] COUNT", required = true, num_args = 1..=2, allow_negative_numbers = true)]
    pub group_and_count: Vec<String>,
    /// Scale the job only if its JobModifyIndex is N
    #[arg(long, value_name = "N", value_parser = crate::args::values::whole::<u64>)]
    pub check_index: Option<u64>,
    /// Return once the job is stored, without watching it
    #[arg(long)]
    pub detach: bool,
    /// Skip the confirmation that an ID prefix requires
    #[arg(long)]
    pub yes: bool,
    /// Show full IDs and the allocations of the deployment
    #[arg(long)]
    pub verbose: bool,
}

const SCALE_EXAMPLES: &str = "\
Examples:
  kafila job scale web 5                       a job with one group
  kafila job scale web server 5
  kafila job scale -check-index 17 web 5       only if the job is unchanged

Exit codes: 0 placed, and the deployment (if there is one) successful; 1 an error, or the
deployment failed; 2 some allocations could not be placed; 130 stopped watching with Ctrl-C, the
rollout continues.";

#[derive(Debug, Args)]
#[command(after_help = EVENTS_EXAMPLES)]
pub struct ScalingEvents {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Also show errors, messages and full evaluation IDs
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EVENTS_EXAMPLES: &str = "\
Examples:
  kafila job scaling-events web
  kafila job scaling-events -verbose web       with errors and messages
  kafila job scaling-events -json web | jq .[].Message

Exit codes: 0 shown; 1 no such job, ambiguous, or the gateway did not answer.";

#[derive(Debug, Subcommand)]
pub enum Periodic {
    /// Launch a periodic job now, even if it overlaps
    Force(Force),
}

#[derive(Debug, Args)]
#[command(after_help = FORCE_EXAMPLES)]
pub struct Force {
    /// The periodic job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Return once the child is stored, without watching it
    #[arg(long)]
    pub detach: bool,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const FORCE_EXAMPLES: &str = "\
Examples:
  kafila job periodic force backup
  kafila job periodic force -detach backup

Exit codes: 0 placed; 1 an error; 2 some allocations could not be placed; 130 stopped watching with
Ctrl-C, the child continues.";

#[derive(Debug, Args)]
#[command(after_help = EVAL_EXAMPLES)]
pub struct Eval {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Replace failed allocations regardless of their reschedule policy
    #[arg(long)]
    pub force_reschedule: bool,
    /// Return once the evaluation is stored, without watching it
    #[arg(long)]
    pub detach: bool,
    /// Skip the confirmation that an ID prefix requires
    #[arg(long)]
    pub yes: bool,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const EVAL_EXAMPLES: &str = "\
Examples:
  kafila job eval web
  kafila job eval -force-reschedule web        retry allocations with no attempts left

Exit codes: 0 placed; 1 an error, or the job's deployment has failed; 2 some allocations could not be
placed; 130 stopped watching with Ctrl-C, the evaluation continues.";

#[derive(Debug, Args)]
#[command(after_help = ALLOCS_EXAMPLES)]
pub struct Allocs {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Include allocations of earlier jobs with the same ID
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub page: crate::args::page::Page,
    /// Show full IDs and times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const ALLOCS_EXAMPLES: &str = "\
Examples:
  kafila job allocs web
  kafila job allocs -json web | jq -r .[].ID

Exit codes: 0 shown; 1 no such job, ambiguous, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = DEPLOYMENTS_EXAMPLES)]
pub struct Deployments {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Show only the latest deployment
    #[arg(long)]
    pub latest: bool,
    /// Include deployments of earlier jobs with the same ID
    #[arg(long)]
    pub all: bool,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const DEPLOYMENTS_EXAMPLES: &str = "\
Examples:
  kafila job deployments web
  kafila job deployments -latest web

Exit codes: 0 shown; 1 no such job, ambiguous, or the gateway did not answer.";
