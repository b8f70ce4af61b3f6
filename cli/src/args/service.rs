//! `kafila dev` and the services, with their flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::dev::Dev;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run all services and a node in one process, for development
    Dev(Dev),
    /// Run the service for API requests and node sessions
    #[command(after_help = API_GATEWAY)]
    ApiGateway(ServiceArgs),
    /// Run the service that queues evaluations for schedulers
    #[command(after_help = EVAL_BROKER)]
    EvalBroker(ServiceArgs),
    /// Run the service that schedules evaluations
    #[command(after_help = SCHEDULER_WORKER)]
    SchedulerWorker(ServiceArgs),
    /// Run the service that verifies and commits plans
    #[command(after_help = PLAN_APPLIER)]
    PlanApplier(ServiceArgs),
    /// Run the service that advances deployments
    #[command(after_help = DEPLOYMENT_WATCHER)]
    DeploymentWatcher(ServiceArgs),
    /// Run the service for node liveness, drains, periodic jobs and garbage collection
    #[command(after_help = CLUSTER_CONTROLLER)]
    ClusterController(ServiceArgs),
    /// Run the node agent, which runs allocations on this machine
    #[command(after_help = CLIENT_NODE)]
    ClientNode(ServiceArgs),
}

#[derive(Clone, Debug, Default, Args)]
pub struct ServiceArgs {
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting; overrides the file and the environment; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print all settings as TOML, with their meaning and unit, and exit
    #[arg(long)]
    pub print_config: bool,
}

/// The end of a service's help: precedence of settings, and examples.
macro_rules! examples {
    ($service:literal, $variable:literal, $key:literal, $value:literal) => {
        concat!(
            "Precedence of settings: -set, then the environment, then the file. Unknown settings are \
             refused. The\nenvironment variable of ",
            $key,
            " is\n",
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
            "https://10.0.0.1:2379,https://10.0.0.2:2379"
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
    "https://10.0.0.9:4646"
);

#[cfg(test)]
mod tests {
    #[test]
    fn the_help_of_services_leaves_out_other_commands_and_global_flags() {
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
