//! The suite itself: `kafila dev`, and each service, with what it can be told on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::dev::Dev;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start everything on this machine, in one process, with nothing else installed
    Dev(Dev),
    /// Run the service that admits jobs, serves reads and talks to nodes
    ApiGateway(ServiceArgs),
    /// Run the service that hands evaluations to workers
    EvalBroker(ServiceArgs),
    /// Run the service that turns evaluations into plans
    SchedulerWorker(ServiceArgs),
    /// Run the service that checks plans and commits them
    PlanApplier(ServiceArgs),
    /// Run the service that moves deployments along
    DeploymentWatcher(ServiceArgs),
    /// Run the service that watches over the nodes
    ClusterController(ServiceArgs),
    /// Run the agent of one machine, which runs its allocations
    ClientNode(ServiceArgs),
}

#[derive(Clone, Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServiceArgs {
    /// A TOML file with the service's settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting, which wins over the file and the environment; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print every setting as TOML, with what it means, its unit and its value, and end
    #[arg(long)]
    pub print_config: bool,
}

const EXAMPLES: &str = "\
Settings come from the file, then from the environment, then from -set; the later wins, and an
unknown one is an error. The setting etcd.endpoints of the eval-broker is in the environment
KAFILA_EVAL_BROKER__ETCD__ENDPOINTS.

Examples:
  kafila eval-broker -print-config
  kafila eval-broker -config /etc/kafila/eval-broker.toml
  kafila eval-broker -set etcd.endpoints=http://10.0.0.1:2379,http://10.0.0.2:2379
  KAFILA_CLIENT_NODE__GATEWAYS=http://10.0.0.9:4646 kafila client-node";
