//! The last log lines of processes and nodes in a debug archive.

use futures::StreamExt as _;
use proto::v1;

use super::cluster::Cluster;
use super::part::Part;
use super::redact;
use crate::connection::Connection;
use crate::error::Error;
use crate::output::colour::Colour;
use crate::render;

/// Most logs of services: each has up to 2,000 lines, some hundred KiB.
const MAX_PROCESSES: usize = 64;
/// Logs that are read at a time: a process that does not answer costs seconds.
const CONCURRENT: usize = 8;

/// A log: its name in the archive, and the process.
struct Log {
    name: String,
    target: v1::AgentTarget,
}

/// Reads the last lines of every process and of at most `max_nodes` nodes; of the gateway and the leaders
/// if the gateway does not list the processes.
pub(super) async fn read(
    connection: &Connection,
    cluster: &Cluster,
    max_nodes: usize,
) -> Vec<Part> {
    let mut logs = of_processes(&cluster.processes);
    if logs.is_empty() {
        logs = of_leaders(&cluster.services);
    }
    let skipped = logs.split_off(logs.len().min(MAX_PROCESSES));
    logs.extend(cluster.nodes.iter().take(max_nodes).map(of_node));
    let reading = futures::stream::iter(logs).map(|log| async move {
        let content = recent_lines(connection, log.target).await;
        let content = content.map(String::into_bytes);
        Part::new(log.name, content.map_err(|error| error.to_string()))
    });
    let mut parts: Vec<Part> = reading.buffered(CONCURRENT).collect().await;
    parts.extend(skipped.into_iter().map(|log| {
        let problem = format!("only the logs of {MAX_PROCESSES} processes are read");
        Part::new(log.name, Err(problem))
    }));
    parts
}

fn of_processes(processes: &[v1::Process]) -> Vec<Log> {
    let logs = processes.iter().map(|process| {
        let address = process.address.split_once("://");
        let host = address.map_or(process.address.as_str(), |(_, host)| host);
        Log {
            name: name(&format!("{}-{host}", process.service)),
            target: v1::AgentTarget {
                process: process.address.clone(),
                ..v1::AgentTarget::default()
            },
        }
    });
    logs.collect()
}

fn of_leaders(services: &[String]) -> Vec<Log> {
    let leaders = services.iter().map(String::as_str);
    let services = std::iter::once("api-gateway").chain(leaders);
    let logs = services.map(|service| Log {
        name: name(service),
        target: v1::AgentTarget {
            service: service.to_owned(),
            ..v1::AgentTarget::default()
        },
    });
    logs.collect()
}

fn of_node(node: &v1::Node) -> Log {
    Log {
        name: name(&format!("client-node-{}-{}", node.name, node.id)),
        target: v1::AgentTarget {
            node_id: node.id.clone(),
            ..v1::AgentTarget::default()
        },
    }
}

fn name(of: &str) -> String {
    format!("logs/{}.recent.txt", super::local::file_name(of))
}

async fn recent_lines(connection: &Connection, target: v1::AgentTarget) -> Result<String, Error> {
    let mut stream = connection
        .monitor(v1::MonitorRequest {
            target: Some(target),
            recent: u32::MAX,
            recent_only: true,
            ..v1::MonitorRequest::default()
        })
        .await?;
    let mut text = String::new();
    while let Some(batch) = connection.next_log_lines(&mut stream).await? {
        for line in batch.lines {
            let line = redact::line(line);
            text.push_str(&render::log::line(&line, false, Colour::Off));
            text.push('\n');
        }
    }
    Ok(text)
}
