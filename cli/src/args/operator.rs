//! `kafila operator …`

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show who leads each service that has a leader
    Leaders(Leaders),
    /// Show and change how the scheduler chooses
    #[command(subcommand)]
    Scheduler(Scheduler),
}

#[derive(Debug, Args)]
#[command(after_help = LEADERS_EXAMPLES)]
pub struct Leaders {
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const LEADERS_EXAMPLES: &str = "\
Examples:
  kafila operator leaders
  kafila operator leaders -json

Exit codes: 0 shown; 1 the gateway did not answer.";

/// `kafila operator scheduler …`
#[derive(Debug, Subcommand)]
pub enum Scheduler {
    /// Show the scheduler configuration
    GetConfig(GetConfig),
    /// Change the scheduler configuration: what is given, and nothing else
    SetConfig(SetConfig),
}

#[derive(Debug, Args)]
#[command(after_help = GET_CONFIG_EXAMPLES)]
pub struct GetConfig {
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const GET_CONFIG_EXAMPLES: &str = "\
Examples:
  kafila operator scheduler get-config
  kafila operator scheduler get-config -json

Exit codes: 0 shown; 1 the gateway did not answer.";

#[derive(Debug, Default, Args)]
#[command(after_help = SET_CONFIG_EXAMPLES)]
pub struct SetConfig {
    /// Only if the configuration's modify index is N; 0: only if nobody has set anything yet
    #[arg(long, value_name = "N", value_parser = super::whole::<u64>)]
    pub check_index: Option<u64>,
    /// How nodes are chosen: binpack fills them up one after the other, spread keeps room on each
    #[arg(long, value_name = "ALGORITHM")]
    pub scheduler_algorithm: Option<Algorithm>,
    /// Whether tasks may use memory up to their memory_max, which is not set aside for them
    #[arg(long, value_name = "BOOL")]
    pub memory_oversubscription: Option<bool>,
    /// Whether registering jobs is refused
    #[arg(long, value_name = "BOOL")]
    pub reject_job_registration: Option<bool>,
    /// Whether evaluations are kept and none is handed to a scheduler
    #[arg(long, value_name = "BOOL")]
    pub pause_eval_broker: Option<bool>,
    /// Whether batch jobs may push aside those of lower priority
    #[arg(long, value_name = "BOOL")]
    pub preempt_batch_scheduler: Option<bool>,
    /// Whether service jobs may push aside those of lower priority
    #[arg(long, value_name = "BOOL")]
    pub preempt_service_scheduler: Option<bool>,
    /// Whether sysbatch jobs may push aside those of lower priority
    #[arg(long, value_name = "BOOL")]
    pub preempt_sysbatch_scheduler: Option<bool>,
    /// Whether system jobs may push aside those of lower priority
    #[arg(long, value_name = "BOOL")]
    pub preempt_system_scheduler: Option<bool>,
}

impl SetConfig {
    /// Tells whether no setting is given.
    pub fn is_empty(&self) -> bool {
        let given = [
            self.memory_oversubscription,
            self.reject_job_registration,
            self.pause_eval_broker,
            self.preempt_batch_scheduler,
            self.preempt_service_scheduler,
            self.preempt_sysbatch_scheduler,
            self.preempt_system_scheduler,
        ];
        self.scheduler_algorithm.is_none() && given.iter().all(Option::is_none)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Algorithm {
    Binpack,
    Spread,
}

impl Algorithm {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Binpack => "binpack",
            Self::Spread => "spread",
        }
    }
}

const SET_CONFIG_EXAMPLES: &str = "\
Examples:
  kafila operator scheduler set-config -scheduler-algorithm=spread
  kafila operator scheduler set-config -preempt-service-scheduler=true -check-index=12
  kafila operator scheduler set-config -pause-eval-broker=true

Exit codes: 0 updated; 1 another modify index than -check-index, nothing to set, or the gateway did
not answer.";
