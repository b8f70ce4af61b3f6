//! The commands that are the suite itself: `kafila dev`, and one for each service.

use std::process::ExitCode;

use serde::de::DeserializeOwned;
use service_kit::config::{self, ConfigError};
use service_kit::{TelemetryConfig, run_service};

use crate::args::service::{Command, ServiceArgs};

/// Loads a service's configuration, builds it and runs it until a signal.
macro_rules! run {
    ($service:ident, $name:literal, $args:expr) => {
        match configured::<$service::Config>($name, $args) {
            Ok(config) => {
                let telemetry: TelemetryConfig = config.telemetry.clone();
                run_service($name, &telemetry, |drain| async move {
                    let app = $service::App::build(config).await?;
                    app.run(drain).await?;
                    Ok::<(), service_kit::run::BoxError>(())
                })
            }
            Err(error) => refuse($name, &error),
        }
    };
}

/// Runs the suite or one service of it until it is told to end.
pub(crate) fn run(command: Command) -> ExitCode {
    match command {
        Command::Dev(args) => crate::dev::run(args),
        Command::ApiGateway(args) => run!(api_gateway, "api-gateway", &args),
        Command::EvalBroker(args) => run!(eval_broker, "eval-broker", &args),
        Command::SchedulerWorker(args) => run!(scheduler_worker, "scheduler-worker", &args),
        Command::PlanApplier(args) => run!(plan_applier, "plan-applier", &args),
        Command::DeploymentWatcher(args) => run!(deployment_watcher, "deployment-watcher", &args),
        Command::ClusterController(args) => run!(cluster_controller, "cluster-controller", &args),
        Command::ClientNode(args) => run!(client_node, "client-node", &args),
    }
}

fn configured<T: DeserializeOwned>(service: &str, args: &ServiceArgs) -> Result<T, ConfigError> {
    let overrides = args
        .set
        .iter()
        .map(|text| config::parse_override(text))
        .collect::<Result<Vec<_>, _>>()?;
    config::load(service, args.config.as_deref(), &overrides)
}

fn refuse(service: &str, error: &ConfigError) -> ExitCode {
    eprintln!("{service}: {}", service_kit::run::chain(error));
    ExitCode::FAILURE
}
