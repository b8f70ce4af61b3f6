//! The node's Consul: its client, and the loop that keeps services registered.

use std::time::Duration;

use consul::Client;
use consul_sync::Services;
use service_kit::CancellationToken;
use task_runner::ConsulServices;
use tokio::time::sleep;
use tracing::warn;

use crate::config::Config;
use crate::error::Error;

/// The interval of looks at the file with the node's token.
const TOKEN_INTERVAL: Duration = Duration::from_secs(10);

/// Returns the node's Consul, if it has one.
///
/// # Errors
/// A setting is wrong, or a file of it cannot be read.
pub(super) fn open(config: &Config) -> Result<Option<task_consul::Node>, Error> {
    if !config.consul.enabled {
        return Ok(None);
    }
    let client = Client::open(&config.consul).map_err(|(field, problem)| Error::Setting {
        field: format!("consul.{field}"),
        problem,
    })?;
    Ok(Some(task_consul::Node::new(client, &config.consul)))
}

/// Returns the services of the node in Consul.
pub(super) fn services(node: &task_consul::Node, config: &Config) -> ConsulServices {
    ConsulServices {
        services: Services::new(node.client().clone()),
        tags: config.consul.tags.clone(),
    }
}

/// Keeps the services of the node's allocations registered until `ended`.
pub(super) async fn keep_registered(tasks: &task_runner::Context, ended: &CancellationToken) {
    let (Some(consul), Some(node)) = (&tasks.consul_services, &tasks.consul) else {
        return;
    };
    let registering = consul.services.run(tasks.ids.rng(), ended.cancelled());
    let reloading = async {
        let mut told = false;
        loop {
            let client = node.client().clone();
            let reloaded = blocking::spawn(move || client.reload_token()).await;
            match reloaded {
                Ok(Err(problem)) if !told => {
                    warn!(problem, "the node keeps its last token of Consul");
                    told = true;
                }
                Ok(Ok(())) => told = false,
                _ => {}
            }
            sleep(TOKEN_INTERVAL).await;
        }
    };
    tokio::select! {
        () = registering => {}
        _ = reloading => {}
    }
}
