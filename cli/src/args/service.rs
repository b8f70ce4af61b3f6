//! The suite itself: `kafila dev`, and each service, with what it can be told on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::dev::Dev;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start everything on this machine, in one process, with nothing else installed
    Dev(Dev),
    /// Run the service that admits jobs, serves reads and talks to nodes
    #[command(after_help = API_GATEWAY)]
    ApiGateway(ServiceArgs),
    /// Run the service that hands evaluations to workers
    #[command(after_help = EVAL_BROKER)]
    EvalBroker(ServiceArgs),
    /// Run the service that turns evaluations into plans
    #[command(after_help = SCHEDULER_WORKER)]
    SchedulerWorker(ServiceArgs),
    /// Run the service that checks plans and commits them
    #[command(after_help = PLAN_APPLIER)]
    PlanApplier(ServiceArgs),
    /// Run the service that moves deployments along
    #[command(after_help = DEPLOYMENT_WATCHER)]
    DeploymentWatcher(ServiceArgs),
    /// Run the service that watches over the nodes
    #[command(after_help = CLUSTER_CONTROLLER)]
    ClusterController(ServiceArgs),
    /// Run the agent of one machine, which runs its allocations
    #[command(after_help = CLIENT_NODE)]
    ClientNode(ServiceArgs),
}

#[derive(Clone, Debug, Default, Args)]
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

/// Returns the end of a service's help: where its settings come from, with an example of its own.
macro_rules! examples {
    ($service:literal, $variable:literal, $key:literal, $value:literal) => {
        concat!(
            "Settings come from the file, then from the environment, then from -set; the later \
             wins, and an\nunknown one is an error. The setting ",
            $key,
            " is in the environment\n",
            $variable,
            ".\n\nExamples:\n  kafila ",
            $service,
            " -print-config\n  kafila ",
            $service,
            " -config /etc/kafila/",
            $service,
            ".toml\n  kafila ",
            $service,
            " -set ",
            $key,
            "=",
            $value,
            "\n  ",
            $variable,
            "=",
            $value,
            " kafila ",
            $service
        )
    };
    // All services but the agent need etcd.
    ($service:literal, $variable:literal) => {
        examples!(
            $service,
            $variable,
            "etcd.endpoints",
            "http://10.0.0.1:2379,http://10.0.0.2:2379"
        )
    };
}

const API_GATEWAY: &str = examples!("api-gateway", "KAFILA_API_GATEWAY__ETCD__ENDPOINTS");
const EVAL_BROKER: &str = examples!("eval-broker", "KAFILA_EVAL_BROKER__ETCD__ENDPOINTS");
const SCHEDULER_WORKER: &str = examples!(
    "scheduler-worker",
    "KAFILA_SCHEDULER_WORKER__ETCD__ENDPOINTS"
);
const PLAN_APPLIER: &str = examples!("plan-applier", "KAFILA_PLAN_APPLIER__ETCD__ENDPOINTS");
const DEPLOYMENT_WATCHER: &str = examples!(
    "deployment-watcher",
    "KAFILA_DEPLOYMENT_WATCHER__ETCD__ENDPOINTS"
);
const CLUSTER_CONTROLLER: &str = examples!(
    "cluster-controller",
    "KAFILA_CLUSTER_CONTROLLER__ETCD__ENDPOINTS"
);
const CLIENT_NODE: &str = examples!(
    "client-node",
    "KAFILA_CLIENT_NODE__GATEWAYS",
    "gateways",
    "http://10.0.0.9:4646"
);

#[cfg(test)]
mod tests {
    #[test]
    fn the_help_of_the_suite_is_about_the_command_itself() {
        let mut root = crate::args::command();
        root.build();
        for service in ["api-gateway", "client-node", "plan-applier", "dev"] {
            let command = root.find_subcommand_mut(service).unwrap();
            let help = command.render_long_help().to_string();
            assert!(help.contains(&format!("  kafila {service}")), "{help}");
            let others = ["eval-broker", "-address", "--namespace", "--timeout"];
            for other in others {
                assert!(
                    !help.contains(other),
                    "{service} speaks of {other}:\n{help}"
                );
            }
        }
    }
}
