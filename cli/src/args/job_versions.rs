//! `kafila job promote`, `revert`, `history` and `tag`.

use clap::{ArgAction, Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = PROMOTE_EXAMPLES)]
pub struct Promote {
    /// The job, or the start of its id
    pub id: String,
    /// Promote only this task group; repeatable [default: all that have canaries]
    #[arg(long = "group", value_name = "GROUP", action = ArgAction::Append)]
    pub groups: Vec<String>,
    /// Return at once, without watching the rest follow
    #[arg(long)]
    pub detach: bool,
    /// Show full ids, and the allocations
    #[arg(long)]
    pub verbose: bool,
}

const PROMOTE_EXAMPLES: &str = "\
Examples:
  kafila job promote web
  kafila job promote -group=app -detach web

Exit codes: 0 promoted, and the deployment successful; 1 no such job, several, no deployment to
promote, canaries that are not healthy, or the deployment failed; 130 stopped watching with Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = REVERT_EXAMPLES)]
pub struct Revert {
    /// The job, or the start of its id
    pub id: String,
    /// The version to go back to, or its tag
    #[arg(value_name = "VERSION|TAG")]
    pub to: String,
    /// Return once the job is stored, without watching it start
    #[arg(long)]
    pub detach: bool,
    /// Show full ids, and the allocations of the deployment
    #[arg(long)]
    pub verbose: bool,
}

const REVERT_EXAMPLES: &str = "\
Examples:
  kafila job history -p web                    which versions there are
  kafila job revert web 3
  kafila job revert -detach web golden         the version with that tag

Exit codes: 0 placed, and the deployment (if there is one) successful; 1 no such job or version, an
error, or the deployment failed; 2 not everything could be placed; 130 detached with Ctrl-C, the job
goes on.";

#[derive(Debug, Args)]
#[command(after_help = HISTORY_EXAMPLES)]
pub struct History {
    /// The job, or the start of its id
    pub id: String,
    /// Show what differs from the version before
    #[arg(short = 'p')]
    pub differences: bool,
    /// Compare with this version instead
    #[arg(
        long,
        value_name = "N",
        requires = "differences",
        conflicts_with = "diff_tag",
        value_parser = super::whole::<u64>,
    )]
    pub diff_version: Option<u64>,
    /// Compare with the version of this tag instead
    #[arg(long, value_name = "TAG", requires = "differences")]
    pub diff_tag: Option<String>,
    /// Show the whole job of each version
    #[arg(long, conflicts_with = "json")]
    pub full: bool,
    /// Show only this version
    #[arg(long, value_name = "N", value_parser = super::whole::<u64>)]
    pub version: Option<u64>,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const HISTORY_EXAMPLES: &str = "\
Examples:
  kafila job history web
  kafila job history -p web                    and what each changed
  kafila job history -p -version=3 web
  kafila job history -p -diff-tag=golden web   what differs from there
  kafila job history -json web | jq '.[] | select(.Stable) | .Version'

Exit codes: 0 shown; 1 no such job, version or tag, several jobs, or the gateway did not answer.";

#[derive(Debug, Subcommand)]
pub enum Tag {
    /// Give a version a name, and keep it as long as it has one
    Apply(TagApply),
    /// Take a name away
    Unset(TagUnset),
}

#[derive(Debug, Args)]
#[command(after_help = TAG_APPLY_EXAMPLES)]
pub struct TagApply {
    /// The job, or the start of its id
    pub id: String,
    /// The name; no other version of the job may have it
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// What it stands for
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub description: String,
    /// The version [default: the current one]
    #[arg(long, value_name = "N", value_parser = super::whole::<u64>)]
    pub version: Option<u64>,
}

const TAG_APPLY_EXAMPLES: &str = "\
Examples:
  kafila job tag apply -name=golden -description='before the move' web
  kafila job tag apply -name=golden -version=3 web

Exit codes: 0 tagged; 1 no such job or version, several jobs, or another version has the name.";

#[derive(Debug, Args)]
#[command(after_help = TAG_UNSET_EXAMPLES)]
pub struct TagUnset {
    /// The job, or the start of its id
    pub id: String,
    /// The name to take away
    #[arg(long, value_name = "NAME")]
    pub name: String,
}

const TAG_UNSET_EXAMPLES: &str = "\
Examples:
  kafila job tag unset -name=golden web

Exit codes: 0 taken away; 1 no such job or tag, or several jobs.";
