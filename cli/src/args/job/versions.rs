//! `kafila job promote`, `revert`, `history` and `tag`.

use clap::{ArgAction, Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = PROMOTE_EXAMPLES)]
pub struct Promote {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Promote only this task group; repeatable [default: all groups with canaries]
    #[arg(long = "group", value_name = "GROUP", action = ArgAction::Append, value_parser = crate::args::values::id)]
    pub groups: Vec<String>,
    /// Return without watching the deployment
    #[arg(long)]
    pub detach: bool,
    /// Show full IDs and the allocations
    #[arg(long)]
    pub verbose: bool,
}

const PROMOTE_EXAMPLES: &str = "\
Examples:
  kafila job promote web
  kafila job promote -group=app -detach web

Exit codes: 0 promoted, and the deployment successful; 1 no such job, ambiguous, no deployment to
promote, unhealthy canaries, or the deployment failed; 130 stopped watching with Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = REVERT_EXAMPLES)]
pub struct Revert {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// The version to run again: its number or tag
    #[arg(value_name = "VERSION|TAG", value_parser = crate::args::values::id)]
    pub to: String,
    /// Return once the job is stored, without watching it
    #[arg(long)]
    pub detach: bool,
    /// Show full IDs and the allocations of the deployment
    #[arg(long)]
    pub verbose: bool,
}

const REVERT_EXAMPLES: &str = "\
Examples:
  kafila job history -p web                    show the versions
  kafila job revert web 3
  kafila job revert -detach web golden         the version tagged golden

Exit codes: 0 placed, and the deployment (if there is one) successful; 1 no such job or version, an
error, or the deployment failed; 2 some allocations could not be placed; 130 stopped watching with
Ctrl-C, the rollout continues.";

#[derive(Debug, Args)]
#[command(after_help = HISTORY_EXAMPLES)]
pub struct History {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Show the diff from the previous version
    #[arg(short = 'p')]
    pub differences: bool,
    /// Diff from this version
    #[arg(
        long,
        value_name = "N",
        requires = "differences",
        conflicts_with = "diff_tag",
        value_parser = crate::args::values::whole::<u64>,
    )]
    pub diff_version: Option<u64>,
    /// Diff from the version with this tag
    #[arg(long, value_name = "TAG", requires = "differences")]
    pub diff_tag: Option<String>,
    /// Show the complete job of each version
    #[arg(long, conflicts_with = "json")]
    pub full: bool,
    /// Show only this version
    #[arg(long, value_name = "N", value_parser = crate::args::values::whole::<u64>)]
    pub version: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const HISTORY_EXAMPLES: &str = "\
Examples:
  kafila job history web
  kafila job history -p web                    with the changes of each version
  kafila job history -p -version=3 web
  kafila job history -p -diff-tag=golden web   the diff from the version tagged golden
  kafila job history -json web | jq '.[] | select(.Stable) | .Version'

Exit codes: 0 shown; 1 no such job, version or tag, ambiguous, or the gateway did not answer.";

#[derive(Debug, Subcommand)]
pub enum Tag {
    /// Tag a version; it is kept while it has a tag
    Apply(TagApply),
    /// Remove a tag
    Unset(TagUnset),
}

#[derive(Debug, Args)]
#[command(after_help = TAG_APPLY_EXAMPLES)]
pub struct TagApply {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// The tag; it must be unique within the job
    #[arg(long, value_name = "NAME", value_parser = crate::args::values::id)]
    pub name: String,
    /// Description of the tag
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub description: String,
    /// The version [default: the current one]
    #[arg(long, value_name = "N", value_parser = crate::args::values::whole::<u64>)]
    pub version: Option<u64>,
}

const TAG_APPLY_EXAMPLES: &str = "\
Examples:
  kafila job tag apply -name=golden -description='before the move' web
  kafila job tag apply -name=golden -version=3 web

Exit codes: 0 tagged; 1 no such job or version, ambiguous, or another version has the tag.";

#[derive(Debug, Args)]
#[command(after_help = TAG_UNSET_EXAMPLES)]
pub struct TagUnset {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// The tag to remove
    #[arg(long, value_name = "NAME", value_parser = crate::args::values::id)]
    pub name: String,
}

const TAG_UNSET_EXAMPLES: &str = "\
Examples:
  kafila job tag unset -name=golden web

Exit codes: 0 removed; 1 no such job or tag, or ambiguous.";
