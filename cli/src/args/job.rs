//! `kafila job …`

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

use super::job_operations as operations;
use super::job_versions::{History, Promote, Revert, Tag};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job file, and watch until its deployment has ended
    Run(Run),
    /// Show what running a job file would change, without changing anything
    Plan(Plan),
    /// List jobs, or show one
    Status(Status),
    /// Stop jobs
    Stop(Stop),
    /// Print a job as JSON, with every default filled in
    Inspect(Inspect),
    /// Check a job file without running it
    Validate(Validate),
    /// Let the rest of a job follow its canaries
    Promote(Promote),
    /// Run a former version again
    Revert(Revert),
    /// Show the versions of a job
    History(History),
    /// Give versions names
    #[command(subcommand)]
    Tag(Tag),
    /// Make a child of a parameterized job
    Dispatch(operations::Dispatch),
    /// Change how many allocations a task group has
    Scale(operations::Scale),
    /// List what was asked of a job's counts
    ScalingEvents(operations::ScalingEvents),
    /// Launch periodic jobs
    #[command(subcommand)]
    Periodic(operations::Periodic),
    /// Have a job looked at once more
    Eval(operations::Eval),
    /// List a job's allocations
    Allocs(operations::Allocs),
    /// List a job's deployments
    Deployments(operations::Deployments),
}

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    pub file: JobFile,
    /// Return once the job is stored, without watching it start
    #[arg(long)]
    pub detach: bool,
    /// Store the job only if its JobModifyIndex is N; 0: only if there is no such job
    #[arg(long, value_name = "N", value_parser = super::whole::<u64>)]
    pub check_index: Option<u64>,
    /// The priority of the evaluation, 1 to 100 [default: the job's]
    #[arg(long, value_name = "N", value_parser = super::priority)]
    pub eval_priority: Option<u32>,
    /// Keep the counts of groups that the stored job has, as after 'kafila job scale'
    #[arg(long)]
    pub preserve_counts: bool,
    /// Keep the resources of tasks that the stored job has
    #[arg(long)]
    pub preserve_resources: bool,
    /// Print the job as JSON instead of running it
    #[arg(long)]
    pub output: bool,
    /// Show full ids, and the allocations of the deployment
    #[arg(long)]
    pub verbose: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  kafila job run web.hcl
  kafila job run -detach -var image=web:2 -var-file prod.vars web.hcl
  kafila job run -check-index 17 web.hcl       only if nobody changed it since
  kafila job run -output web.hcl               what would be sent
  generate-job | kafila job run -              from standard input

Exit codes: 0 placed, and the deployment (if there is one) successful; 1 an error, or the
deployment failed, now or before; 2 not everything could be placed; 130 detached with Ctrl-C, the job goes on.";

#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub struct Plan {
    #[command(flatten)]
    pub file: JobFile,
    /// Whether to show what differs from the job that is there
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub diff: bool,
    /// Show every field of what is new or goes, and full ids
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json_output: bool,
    /// Print a Go template, filled in with what -json-output would print
    #[arg(short = 't', value_name = "TEMPLATE")]
    pub template: Option<String>,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  kafila job plan web.hcl
  kafila job plan -var image=web:2 web.hcl
  kafila job plan -diff=false web.hcl          only what the scheduler would do
  kafila job plan -json-output web.hcl | jq .Diff.Type
  kafila job plan -t '{{.Diff.Type}} {{.JobModifyIndex}}' web.hcl
  generate-job | kafila job plan -             from standard input

Exit codes: 0 no allocation would be created or destroyed, or the file is the job that is there,
whether all of it has a place or not; 1 some would; 255 an error.";

/// A job file, and what it may be told.
#[derive(Clone, Debug, Default, Args)]
pub struct JobFile {
    /// The job file, HCL or JSON; - reads standard input
    #[arg(value_name = "FILE")]
    pub path: PathBuf,
    /// The file is JSON as the API has it, with keys such as TaskGroups
    #[arg(long)]
    pub json: bool,
    /// A value for a variable of the file; repeatable
    #[arg(long = "var", value_name = "NAME=VALUE", action = ArgAction::Append)]
    pub variables: Vec<String>,
    /// A file with values for variables; repeatable
    #[arg(long = "var-file", value_name = "FILE", action = ArgAction::Append)]
    pub variable_files: Vec<PathBuf>,
    /// Whether a value for a variable that the file does not declare is an error
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub hcl2_strict: bool,
}

#[derive(Debug, Default, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The job, or the start of its id
    pub id: Option<String>,
    /// Show only what the job is
    #[arg(long)]
    pub short: bool,
    /// Show its evaluations
    #[arg(long)]
    pub evals: bool,
    /// Show allocations of former jobs of the same id as well
    #[arg(long)]
    pub all_allocs: bool,
    /// Show full ids and times, and evaluations
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila job status
  kafila job status web
  kafila job status -namespace='*'             jobs of every namespace
  kafila job status -json web | jq -r .Status

Exit codes: 0 shown; 1 no such job, several, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = STOP_EXAMPLES)]
pub struct Stop {
    /// The jobs, or the starts of their ids
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Forget the job as well, with its versions and allocations
    #[arg(long)]
    pub purge: bool,
    /// Return at once, without watching it stop
    #[arg(long)]
    pub detach: bool,
    /// The priority of the evaluation, 1 to 100 [default: the job's]
    #[arg(long, value_name = "N", value_parser = super::priority)]
    pub eval_priority: Option<u32>,
    /// Do not ask, even where the id was only the start of one
    #[arg(long)]
    pub yes: bool,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
}

const STOP_EXAMPLES: &str = "\
Examples:
  kafila job stop web
  kafila job stop -purge -detach web
  kafila job stop web api worker               several at once

Exit codes: 0 stopped, or you said no; 1 no such job, several, or an error; 130 detached with
Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = INSPECT_EXAMPLES)]
pub struct Inspect {
    /// The job, or the start of its id
    pub id: String,
    /// A former version
    #[arg(long, value_name = "N", value_parser = super::whole::<u64>)]
    pub version: Option<u64>,
    /// Print JSON: what this command always does
    #[arg(long)]
    pub json: bool,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  kafila job inspect web
  kafila job inspect -version 3 web > web.v3.json
  kafila job run -json web.v3.json             what it prints can be run again

Exit codes: 0 printed; 1 no such job or version, several jobs, or the gateway did not answer.";

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

Works without a gateway; what only the cluster can know is then left out, and the command says so.
Exit codes: 0 valid; 1 not.";
