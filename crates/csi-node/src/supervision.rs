//! Supervision of one plugin: its probes, its facts, and the events that they make.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use csi::{Error, Plugin};
use model::CsiPluginTask;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::layout::PluginPaths;
use crate::registry::{Registration, Registry, TaskKey};

/// The pause between probes of a plugin that has not answered yet.
const STARTING: Duration = Duration::from_millis(500);
/// The pause between probes of a healthy plugin. Source: Nomad's public behaviour.
const HEALTHY: Duration = Duration::from_secs(30);
/// The pause between probes of a plugin that was healthy before.
const UNHEALTHY: Duration = Duration::from_secs(2);

/// A change of a plugin's health, for the events of its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginEvent {
    Healthy,
    Unhealthy {
        reason: String,
    },
    /// It has not become healthy in time. The last event.
    TimedOut {
        reason: String,
    },
}

/// Watches a plugin for as long as the future is polled; returns once it has not become healthy in
/// time. Dropping the future removes the plugin from the registry.
pub async fn supervise(
    registry: &Arc<Registry>,
    key: TaskKey,
    task: &CsiPluginTask,
    socket: &Path,
    paths: PluginPaths,
    events: &mpsc::Sender<PluginEvent>,
) {
    let plugin = Plugin::at(socket);
    let registration = registry.add(key, task.clone(), plugin.clone(), paths);
    let deadline = Instant::now() + task.health_timeout;
    let mut was_healthy = false;
    loop {
        let pause = match examine(&plugin, task, &registration).await {
            Ok(turned) => {
                was_healthy = true;
                if turned {
                    tell(events, PluginEvent::Healthy).await;
                }
                HEALTHY
            }
            Err(error) => {
                let reason = error.to_string();
                if registration.set_unhealthy(&reason) {
                    let reason = reason.clone();
                    tell(events, PluginEvent::Unhealthy { reason }).await;
                }
                if !was_healthy && Instant::now() >= deadline {
                    tell(events, PluginEvent::TimedOut { reason }).await;
                    return;
                }
                if was_healthy { UNHEALTHY } else { STARTING }
            }
        };
        sleep(pause).await;
    }
}

async fn tell(events: &mpsc::Sender<PluginEvent>, event: PluginEvent) {
    // Without a reader the task has ended.
    let _ = events.send(event).await;
}

/// Probes the plugin and reads its facts. Returns whether it has become healthy.
async fn examine(
    plugin: &Plugin,
    task: &CsiPluginTask,
    registration: &Registration,
) -> Result<bool, Error> {
    if !plugin.probe().await? {
        return Err(Error::not_ready());
    }
    let facts = plugin.facts().await?;
    let node = if task.plugin_type.has_node() {
        Some(plugin.node_facts().await?)
    } else {
        None
    };
    let controller = if task.plugin_type.has_controller() {
        Some(plugin.controller_facts().await?)
    } else {
        None
    };
    Ok(registration.set_healthy(&facts, node, controller))
}
