//! `kafila deployment promote`, `pause`, `resume`, `fail` and `unblock`.

use clap::{ArgAction, Args};

#[derive(Debug, Args)]
#[command(after_help = PROMOTE_EXAMPLES)]
pub struct Promote {
    /// The deployment, or the start of its id
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
  kafila deployment promote 5e6f7a8b
  kafila deployment promote -group=web -detach 5e6f7a8b

Exit codes: 0 promoted, and the deployment successful; 1 no such deployment, several, canaries that
are not healthy, or the deployment failed; 130 stopped watching with Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = PAUSE_EXAMPLES)]
pub struct Pause {
    /// The deployment, or the start of its id
    pub id: String,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
}

const PAUSE_EXAMPLES: &str = "\
Examples:
  kafila deployment pause 5e6f7a8b
  kafila deployment resume 5e6f7a8b            and its time to progress begins anew

Exit codes: 0 paused; 1 no such deployment, several, or it has ended.";

#[derive(Debug, Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub struct Resume {
    /// The deployment, or the start of its id
    pub id: String,
    /// Return at once, without watching it go on
    #[arg(long)]
    pub detach: bool,
    /// Show full ids, and the allocations
    #[arg(long)]
    pub verbose: bool,
}

const RESUME_EXAMPLES: &str = "\
Examples:
  kafila deployment resume 5e6f7a8b
  kafila deployment resume -detach 5e6f7a8b

Exit codes: 0 resumed, and the deployment successful; 1 no such deployment, several, it has ended,
or it failed; 130 stopped watching with Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = FAIL_EXAMPLES)]
pub struct Fail {
    /// The deployment, or the start of its id
    pub id: String,
    /// Return at once, without watching what follows
    #[arg(long)]
    pub detach: bool,
    /// Show full ids, and the allocations
    #[arg(long)]
    pub verbose: bool,
}

const FAIL_EXAMPLES: &str = "\
Examples:
  kafila deployment fail 5e6f7a8b
  kafila deployment fail -detach 5e6f7a8b

Exit codes: 0 failed, and if the job was taken back, that deployment successful; 1 no such
deployment, several, it has ended, or what took the job back failed; 130 stopped watching with
Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = UNBLOCK_EXAMPLES)]
pub struct Unblock {
    /// The deployment, or the start of its id
    pub id: String,
    /// Return at once, without watching it go on
    #[arg(long)]
    pub detach: bool,
    /// Show full ids, and the allocations
    #[arg(long)]
    pub verbose: bool,
}

const UNBLOCK_EXAMPLES: &str = "\
Examples:
  kafila deployment unblock 5e6f7a8b

Exit codes: 1: only deployments over several regions are ever blocked, and there is one region.";
