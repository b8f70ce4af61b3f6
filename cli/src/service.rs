//! Commands that run services: `kafila dev` and one for each service.

use std::io::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;
use service_kit::config::{self, ConfigError};
use service_kit::print::{self, Documented};
use service_kit::{TelemetryConfig, run_service};

use crate::args::service::{Command, ServiceArgs};

/// Loads the configuration of a service, builds it and runs it until a signal.
macro_rules! run {
    ($service:ident, $name:literal, $args:expr) => {
        run!($service, $name, $args, build)
    };
    ($service:ident, $name:literal, $args:expr, $build:ident) => {
        match configured::<$service::Config>($name, $args) {
            Ok(config) if $args.print_config => show(&config),
            Ok(config) => {
                let telemetry: TelemetryConfig = config.telemetry.clone();
                run_service($name, &telemetry, |drain| async move {
                    let app = tokio::select! {
                        app = $service::App::$build(config) => app?,
                        // A node that waits for its certificate, for example.
                        () = drain.cancelled() => return Ok(()),
                    };
                    app.run(drain).await?;
                    Ok::<(), service_kit::run::BoxError>(())
                })
            }
            Err(error) => refuse($name, &error),
        }
    };
}

/// Runs `kafila dev` or one service until a signal.
pub(crate) fn run(command: Command) -> ExitCode {
    match command {
        Command::Dev(args) => crate::dev::run(args),
        Command::ApiGateway(args) => run!(api_gateway, "api-gateway", &args),
        Command::EvalBroker(args) => run!(eval_broker, "eval-broker", &args),
        Command::SchedulerWorker(args) => run!(scheduler_worker, "scheduler-worker", &args),
        Command::PlanApplier(args) => run!(plan_applier, "plan-applier", &args),
        Command::DeploymentWatcher(args) => run!(deployment_watcher, "deployment-watcher", &args),
        Command::ClusterController(args) => run!(cluster_controller, "cluster-controller", &args),
        Command::ClientNode(args) => run!(client_node, "client-node", &args, build_service),
    }
}

fn configured<T: DeserializeOwned + Serialize + Default>(
    service: &str,
    args: &ServiceArgs,
) -> Result<T, ConfigError> {
    let overrides = args
        .set
        .iter()
        .map(|text| config::parse_override(text))
        .collect::<Result<Vec<_>, _>>()?;
    config::load(service, args.config.as_deref(), &overrides)
}

/// Prints all settings. A closed pipe is no failure.
fn show<T: Documented>(config: &T) -> ExitCode {
    let _ = std::io::stdout().write_all(print::toml(config).as_bytes());
    ExitCode::SUCCESS
}

fn refuse(service: &str, error: &ConfigError) -> ExitCode {
    eprintln!("{service}: {}", service_kit::run::chain(error));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    /// Every setting is documented, and the printed configuration can be loaded.
    fn check<T>(service: &str)
    where
        T: Documented + DeserializeOwned + Default + Debug + PartialEq,
    {
        let defaults = T::default();
        assert!(print::undocumented(&defaults).is_empty(), "{service}");
        let text = print::toml(&defaults);
        let mut keys = Vec::new();
        leaves(&serde_json::to_value(&defaults).unwrap(), &mut keys);
        assert!(keys.len() > 8, "{service}: {keys:?}");
        for key in keys {
            let is_printed = text.lines().any(|line| {
                let line = line.strip_prefix("# ").unwrap_or(line);
                // An entry of a map, such as the options of a log driver, stands in one line with it.
                line.starts_with(&format!("{key} = ")) || line.contains(&format!("\"{key}\" = "))
            });
            assert!(is_printed, "{service}: {key} is missing in:\n{text}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &text).unwrap();
        let args = ServiceArgs {
            config: Some(file.path().to_owned()),
            ..ServiceArgs::default()
        };
        assert_eq!(configured::<T>(service, &args).unwrap(), defaults);
    }

    fn leaves(value: &serde_json::Value, keys: &mut Vec<String>) {
        for (key, value) in value.as_object().into_iter().flatten() {
            match value {
                serde_json::Value::Object(table) if !table.is_empty() => leaves(value, keys),
                _ => keys.push(key.clone()),
            }
        }
    }

    #[test]
    fn every_setting_of_every_service_is_printed_with_its_meaning() {
        check::<api_gateway::Config>("api-gateway");
        check::<eval_broker::Config>("eval-broker");
        check::<scheduler_worker::Config>("scheduler-worker");
        check::<plan_applier::Config>("plan-applier");
        check::<deployment_watcher::Config>("deployment-watcher");
        check::<cluster_controller::Config>("cluster-controller");
        check::<client_node::Config>("client-node");
    }

    #[test]
    fn a_gateway_a_node_and_the_command_find_each_other_by_default() {
        let gateway = api_gateway::Config::default().listen.grpc;
        let address = format!("http://{gateway}");
        assert_eq!(client_node::Config::default().gateways, [address.as_str()]);
        assert_eq!(crate::address::DEFAULT, address);
        // Setting one listen field keeps the port.
        let args = ServiceArgs {
            set: vec!["listen.advertise=10.0.0.1:4646".to_owned()],
            ..ServiceArgs::default()
        };
        let config = configured::<api_gateway::Config>("api-gateway", &args).unwrap();
        assert_eq!(config.listen.grpc, gateway);
        assert_eq!(
            config.listen.advertise.as_deref(),
            Some("http://10.0.0.1:4646")
        );
    }
}
