//! `kafila deployment promote`, `pause`, `resume`, `fail` and `unblock`.

use clap::{ArgAction, Args};

#[derive(Debug, Args)]
#[command(after_help = PROMOTE_EXAMPLES)]
pub struct Promote {
    /// The deployment, or a unique prefix of its ID
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
  kafila deployment promote 5e6f7a8b
  kafila deployment promote -group=web -detach 5e6f7a8b

Exit codes: 0 promoted, and the deployment successful; 1 no such deployment, ambiguous, unhealthy
canaries, or the deployment failed; 130 stopped watching with Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = PAUSE_EXAMPLES)]
pub struct Pause {
    /// The deployment, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const PAUSE_EXAMPLES: &str = "\
Examples:
  kafila deployment pause 5e6f7a8b
  kafila deployment resume 5e6f7a8b            restarts its progress deadline

Exit codes: 0 paused; 1 no such deployment, ambiguous, or the deployment has ended.";

#[derive(Debug, Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub struct Resume {
    /// The deployment, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Return without watching the deployment
    #[arg(long)]
    pub detach: bool,
    /// Show full IDs and the allocations
    #[arg(long)]
    pub verbose: bool,
}

const RESUME_EXAMPLES: &str = "\
Examples:
  kafila deployment resume 5e6f7a8b
  kafila deployment resume -detach 5e6f7a8b

Exit codes: 0 resumed, and the deployment successful; 1 no such deployment, ambiguous, or the
deployment has ended or failed; 130 stopped watching with Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = FAIL_EXAMPLES)]
pub struct Fail {
    /// The deployment, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Return without watching the rollback
    #[arg(long)]
    pub detach: bool,
    /// Show full IDs and the allocations
    #[arg(long)]
    pub verbose: bool,
}

const FAIL_EXAMPLES: &str = "\
Examples:
  kafila deployment fail 5e6f7a8b
  kafila deployment fail -detach 5e6f7a8b

Exit codes: 0 failed, and the rollback (if there is one) successful; 1 no such deployment, ambiguous,
the deployment has ended, or the rollback failed; 130 stopped watching with Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = UNBLOCK_EXAMPLES)]
pub struct Unblock {
    /// The deployment, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Return without watching the deployment
    #[arg(long)]
    pub detach: bool,
    /// Show full IDs and the allocations
    #[arg(long)]
    pub verbose: bool,
}

const UNBLOCK_EXAMPLES: &str = "\
Examples:
  kafila deployment unblock 5e6f7a8b

Exit codes: 1 always: only multi-region deployments are ever blocked, and there is one region.";
