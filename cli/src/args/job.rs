//! `kafila job …`

pub mod operations;
pub mod restart;
pub mod versions;

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

use self::versions::{History, Promote, Revert, Tag};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write an example job file
    Init(Init),
    /// Run a job file and watch its deployment
    Run(Run),
    /// Dry run: show what running a job file would change
    Plan(Plan),
    /// List jobs or show one
    Status(Status),
    /// Stop jobs
    Stop(Stop),
    /// Restart the allocations of a job, in batches
    Restart(restart::Restart),
    /// Print a job as JSON with all defaults
    Inspect(Inspect),
    /// Validate a job file without running it
    Validate(Validate),
    /// Promote the canaries of a job's deployment
    Promote(Promote),
    /// Run an earlier version again
    Revert(Revert),
    /// Show the versions of a job
    History(History),
    /// Tag versions
    #[command(subcommand)]
    Tag(Tag),
    /// Dispatch a parameterized job
    Dispatch(operations::Dispatch),
    /// Change the count of a task group
    Scale(operations::Scale),
    /// List the scaling events of a job
    ScalingEvents(operations::ScalingEvents),
    /// Launch a periodic job
    #[command(subcommand)]
    Periodic(operations::Periodic),
    /// Create an evaluation of a job
    Eval(operations::Eval),
    /// Run an action of a task: a command that its job names
    Action(super::action::Action),
    /// List a job's allocations
    Allocs(operations::Allocs),
    /// List a job's deployments
    Deployments(operations::Deployments),
}

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    /// File to write [default: example.nomad.hcl]
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub path: Option<PathBuf>,
    /// Write a file without comments and with few settings
    #[arg(long)]
    pub short: bool,
}

const INIT_EXAMPLES: &str = "\
Examples:
  kafila job init
  kafila job init -short web.hcl

Exit codes: 0 written; 1 the file already exists or cannot be written.";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    pub file: JobFile,
    /// Return once the job is stored, without watching it
    #[arg(long)]
    pub detach: bool,
    /// Store the job only if its JobModifyIndex is N; 0: only if the job does not exist
    #[arg(long, value_name = "N", value_parser = super::values::whole::<u64>)]
    pub check_index: Option<u64>,
    /// Priority of the evaluation, 1 to 100 [default: the job's]
    #[arg(long, value_name = "N", value_parser = super::values::priority)]
    pub eval_priority: Option<u32>,
    /// Keep the counts of the stored job, for example those set by 'kafila job scale'
    #[arg(long)]
    pub preserve_counts: bool,
    /// Keep the task resources of the stored job
    #[arg(long)]
    pub preserve_resources: bool,
    /// Store a new version even if the job is unchanged, and replace ended allocations
    #[arg(long)]
    pub force: bool,
    /// Print the job as JSON instead of running it
    #[arg(long)]
    pub output: bool,
    /// Show full IDs and the allocations of the deployment
    #[arg(long)]
    pub verbose: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  kafila job run web.hcl
  kafila job run -detach -var image=web:2 -var-file prod.vars web.hcl
  kafila job run -check-index 17 web.hcl       only if the job is unchanged
  kafila job run -force web.hcl                try again after a failed deployment
  kafila job run -output web.hcl               print the job as JSON
  generate-job | kafila job run -              read standard input

Exit codes: 0 placed, and the deployment (if there is one) successful; 1 an error, or the
deployment failed, now or earlier; 2 some allocations could not be placed; 130 stopped watching with
Ctrl-C, the rollout continues.";

#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub struct Plan {
    #[command(flatten)]
    pub file: JobFile,
    /// Show the diff from the stored job
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub diff: bool,
    /// Show all fields of added and removed objects, and full IDs
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json_output: bool,
    /// Render the output of -json-output with a Go template
    #[arg(short = 't', value_name = "TEMPLATE")]
    pub template: Option<String>,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  kafila job plan web.hcl
  kafila job plan -var image=web:2 web.hcl
  kafila job plan -diff=false web.hcl          only the scheduler's decisions
  kafila job plan -json-output web.hcl | jq .Diff.Type
  kafila job plan -t '{{.Diff.Type}} {{.JobModifyIndex}}' web.hcl
  generate-job | kafila job plan -             read standard input

Exit codes: 0 no allocations created or destroyed, or the job is unchanged; 1 allocations created or
destroyed; 255 an error.";

/// A job file and its inputs.
#[derive(Clone, Debug, Default, Args)]
pub struct JobFile {
    /// Job file, HCL or JSON; '-' reads standard input
    #[arg(value_name = "FILE")]
    pub path: PathBuf,
    /// Read the file as JSON of the HTTP API, with keys such as TaskGroups
    #[arg(long)]
    pub json: bool,
    /// Value of a variable in the job file; repeatable
    #[arg(long = "var", value_name = "NAME=VALUE", action = ArgAction::Append)]
    pub variables: Vec<String>,
    /// File with values of variables; repeatable
    #[arg(long = "var-file", value_name = "FILE", action = ArgAction::Append)]
    pub variable_files: Vec<PathBuf>,
    /// Refuse values for variables that the job file does not declare
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub hcl2_strict: bool,
}

#[derive(Debug, Default, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: Option<String>,
    /// Show only the header
    #[arg(long)]
    pub short: bool,
    /// Show the evaluations
    #[arg(long)]
    pub evals: bool,
    /// Include allocations of earlier jobs with the same ID
    #[arg(long)]
    pub all_allocs: bool,
    /// Show full IDs, times and evaluations
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub page: super::page::Page,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila job status
  kafila job status web
  kafila job status -namespace='*'             jobs in all namespaces
  kafila job status -per-page 50               the first page of the list
  kafila job status -json web | jq -r .Status

Exit codes: 0 shown; 1 no such job, ambiguous, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = STOP_EXAMPLES)]
pub struct Stop {
    /// The jobs, or unique prefixes of their IDs
    #[arg(value_name = "ID", required = true, value_parser = super::values::id)]
    pub ids: Vec<String>,
    /// Also delete the job, with its versions and allocations
    #[arg(long)]
    pub purge: bool,
    /// Return without watching the job stop
    #[arg(long)]
    pub detach: bool,
    /// Stop the tasks at once, without the shutdown_delay of groups and tasks
    #[arg(long)]
    pub no_shutdown_delay: bool,
    /// Priority of the evaluation, 1 to 100 [default: the job's]
    #[arg(long, value_name = "N", value_parser = super::values::priority)]
    pub eval_priority: Option<u32>,
    /// Skip the confirmation that an ID prefix requires
    #[arg(long)]
    pub yes: bool,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const STOP_EXAMPLES: &str = "\
Examples:
  kafila job stop web
  kafila job stop -purge -detach web
  kafila job stop web api worker               several jobs

Exit codes: 0 stopped, or you declined; 1 no such job, ambiguous, or an error; 130 stopped watching
with Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = INSPECT_EXAMPLES)]
pub struct Inspect {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Number of an earlier version
    #[arg(long, value_name = "N", value_parser = super::values::whole::<u64>)]
    pub version: Option<u64>,
    /// Print JSON, the default of this command
    #[arg(long)]
    pub json: bool,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  kafila job inspect web
  kafila job inspect -version 3 web > web.v3.json
  kafila job run -json web.v3.json             run the saved version

Exit codes: 0 printed; 1 no such job or version, ambiguous, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub struct Validate {
    #[command(flatten)]
    pub file: JobFile,
}

const VALIDATE_EXAMPLES: &str = "\
Examples:
  kafila job validate web.hcl
  kafila job validate -var image=web:2 web.hcl
  kafila job validate -json web.json

Without a gateway, only the file is checked: checks that need the cluster are skipped with a warning.
Exit codes: 0 valid; 1 invalid.";
