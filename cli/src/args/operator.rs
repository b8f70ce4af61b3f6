//! `kafila operator …`

pub mod debug;
pub mod root;
pub mod snapshot;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the leader of each service that elects one
    Leaders(Leaders),
    /// Show the running processes of the services
    Processes(Processes),
    /// Check the health of the service or node at an address
    Health(Health),
    /// Show or set the level at which a gateway, a service or a node logs
    LogLevel(LogLevel),
    /// Show and change the scheduler configuration
    #[command(subcommand)]
    Scheduler(Scheduler),
    /// Show and maintain etcd, which stores the state of the cluster
    #[command(subcommand)]
    Etcd(Etcd),
    /// Collect an archive for bug reports, without secrets
    Debug(debug::Debug),
    /// Save, inspect and restore snapshots of etcd
    #[command(subcommand)]
    Snapshot(snapshot::Command),
    /// Show and rotate the keys of the cluster
    #[command(subcommand)]
    Root(root::Command),
}

#[derive(Debug, Args)]
#[command(after_help = LEADERS_EXAMPLES)]
pub struct Leaders {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const LEADERS_EXAMPLES: &str = "\
Examples:
  kafila operator leaders
  kafila operator leaders -json

Exit codes: 0 shown; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = PROCESSES_EXAMPLES)]
pub struct Processes {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const PROCESSES_EXAMPLES: &str = "\
Gateways, leaders, the replicas that do not lead, and scheduler-workers, with their addresses. For nodes,
use 'kafila node status'. A process that was killed is shown until its lease ends, after 30 s or more, and
does not answer the gateway (Answers: no).

Examples:
  kafila operator processes
  kafila operator processes -json

Exit codes: 0 shown; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = HEALTH_EXAMPLES)]
pub struct Health {
    /// Wait for the service to become ready, at most this long, for example 30s
    #[arg(long, value_name = "DURATION", value_parser = super::values::duration)]
    pub wait: Option<std::time::Duration>,
    /// Ask only whether the process is ready, not whether etcd answers it now: for the health checks of
    /// containers, whose certificates may not read the status of etcd
    #[arg(long)]
    pub only_process: bool,
}

const HEALTH_EXAMPLES: &str = "\
Asks the process at -address, whichever service it is, by gRPC health checking: any service or node,
not only a gateway.

Examples:
  kafila operator health
  kafila operator health -address=http://10.0.0.7:7101 -timeout=2s
  kafila operator health -wait=30s

Exit codes: 0 ready; 1 not ready, or no answer.";

#[derive(Debug, Args)]
#[command(after_help = LOG_LEVEL_EXAMPLES)]
pub struct LogLevel {
    /// The level to set: error, warn, info, debug, trace or off; or levels of modules, such as
    /// info,store=debug [default: only show the level]
    #[arg(value_name = "LEVEL", value_parser = super::values::id)]
    pub level: Option<String>,
    /// Time until the configured level returns, at most 24h
    #[arg(long = "for", value_name = "DURATION", default_value = "1h",
          value_parser = super::values::duration, requires = "level")]
    pub duration: std::time::Duration,
    /// Keep the level until the process ends
    #[arg(long, conflicts_with = "duration", requires = "level")]
    pub until_restart: bool,
    /// Return to the configured level (telemetry.log)
    #[arg(long, conflicts_with = "level")]
    pub reset: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: super::monitor::Target,
}

const LOG_LEVEL_EXAMPLES: &str = "\
Changes what the process prints, for an hour unless told otherwise. To read more of a log without
printing it, use 'kafila monitor'. Any service or node answers at its own address; a gateway also
reaches the others.

Examples:
  kafila operator log-level                       of the gateway at -address
  kafila operator log-level -service=eval-broker debug -for=10m
  kafila operator log-level -node-id=4d2ba53b info,client_node=debug
  kafila operator log-level -process=10.0.0.7:4648 debug
  kafila operator log-level -service=eval-broker -reset

Exit codes: 0 shown or set; 1 no such process, a level that is none, or no answer.";

/// `kafila operator scheduler …`
#[derive(Debug, Subcommand)]
pub enum Scheduler {
    /// Show the scheduler configuration
    GetConfig(GetConfig),
    /// Change settings of the scheduler configuration; others keep their value
    SetConfig(SetConfig),
}

#[derive(Debug, Args)]
#[command(after_help = GET_CONFIG_EXAMPLES)]
pub struct GetConfig {
    /// Print JSON
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
    /// Change only if the configuration's ModifyIndex is N; 0: only if it was never set
    #[arg(long, value_name = "N", value_parser = super::values::whole::<u64>)]
    pub check_index: Option<u64>,
    /// Placement algorithm: binpack fills nodes one after the other, spread distributes allocations
    #[arg(long, value_name = "ALGORITHM")]
    pub scheduler_algorithm: Option<Algorithm>,
    /// Allow tasks to use memory up to memory_max, which is not reserved
    #[arg(long, value_name = "BOOL")]
    pub memory_oversubscription: Option<bool>,
    /// Refuse job registrations
    #[arg(long, value_name = "BOOL")]
    pub reject_job_registration: Option<bool>,
    /// Stop delivering evaluations to schedulers; new ones queue up
    #[arg(long, value_name = "BOOL")]
    pub pause_eval_broker: Option<bool>,
    /// Allow batch jobs to preempt jobs of lower priority
    #[arg(long, value_name = "BOOL")]
    pub preempt_batch_scheduler: Option<bool>,
    /// Allow service jobs to preempt jobs of lower priority
    #[arg(long, value_name = "BOOL")]
    pub preempt_service_scheduler: Option<bool>,
    /// Allow sysbatch jobs to preempt jobs of lower priority
    #[arg(long, value_name = "BOOL")]
    pub preempt_sysbatch_scheduler: Option<bool>,
    /// Allow system jobs to preempt jobs of lower priority
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

Exit codes: 0 updated; 1 -check-index does not match, no setting given, or the gateway did not answer.";

/// `kafila operator etcd …`
#[derive(Debug, Subcommand)]
pub enum Etcd {
    /// Show size, quota and alarm of each member
    #[command(after_help = ETCD_STATUS_EXAMPLES)]
    Status,
    /// Drop the history before a revision, whose space etcd then reuses
    Compact(EtcdCompact),
    /// Rewrite the databases of members without free pages, one member after another
    Defrag(EtcdDefrag),
    /// Disarm the alarm NOSPACE, so that etcd accepts writes again
    #[command(after_help = ETCD_DISARM_EXAMPLES)]
    Disarm,
}

const ETCD_STATUS_EXAMPLES: &str = "\
Needs no leader: the gateway asks etcd itself.

Examples:
  kafila operator etcd status

Exit codes: 0 shown; 1 a member did not answer, new work is refused, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = ETCD_COMPACT_EXAMPLES)]
pub struct EtcdCompact {
    /// The oldest revision to keep; default: the newest one
    #[arg(long, value_name = "N", value_parser = super::values::whole::<u64>)]
    pub revision: Option<u64>,
}

const ETCD_COMPACT_EXAMPLES: &str = "\
The cluster-controller compacts by itself (compaction_history); this is for a full etcd. Services and
event streams that are behind the revision start over.

Examples:
  kafila operator etcd compact
  kafila operator etcd compact -revision=120000

Exit codes: 0 compacted; 1 not compacted.";

#[derive(Debug, Args)]
#[command(after_help = ETCD_DEFRAG_EXAMPLES)]
pub struct EtcdDefrag {
    /// Only the member with this endpoint, as shown by status
    #[arg(long, value_name = "ENDPOINT")]
    pub member: Option<String>,
}

const ETCD_DEFRAG_EXAMPLES: &str = "\
A member answers nothing while it is rewritten, for seconds per GiB. Followers come before the leader,
and each member has to answer again before the next one begins. Compact first.

Examples:
  kafila operator etcd defrag
  kafila operator etcd defrag -member=http://10.0.0.1:2379

Exit codes: 0 done; 1 a member was not defragmented; the following ones were not begun.";

const ETCD_DISARM_EXAMPLES: &str = "\
Compact and defragment first: without space etcd raises the alarm again at the next write. The
cluster-controller does all three by itself.

Examples:
  kafila operator etcd disarm

Exit codes: 0 no alarm stands; 1 not disarmed.";
