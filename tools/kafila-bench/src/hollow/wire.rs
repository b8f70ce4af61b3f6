//! Messages of a hollow node: its record, its reports, and the assignments that it gets.

use std::collections::HashMap;
use std::sync::Arc;

use proto::internal::v1 as internal;
use proto::v1;
use uuid::Uuid;

use super::node::{Assigned, Phase, Recorded, Report, Slot};
use super::script::Script;

/// Resources of a hollow node: room for 1,600 of the loads' allocations.
const RESOURCES: v1::NodeResources = v1::NodeResources {
    cpu_mhz: 32_000,
    memory_mib: 65_536,
    disk_mib: 1_000_000,
};
/// A node without a server: the discard port (RFC 863).
const ADDRESS: &str = "http://127.0.0.1:9";

/// Returns the record of the node `number`. A quarter of the nodes has `meta.tier = "fast"`.
pub(super) fn record(run: &str, number: u32, id: u128, racks: u32) -> v1::Node {
    let name = format!("hollow-{run}-{number}");
    let attributes = [
        ("cpu.arch", std::env::consts::ARCH.to_owned()),
        ("cpu.numcores", "16".to_owned()),
        ("cpu.totalcompute", RESOURCES.cpu_mhz.to_string()),
        ("driver.mock_driver", "1".to_owned()),
        ("kafila.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("kernel.name", "linux".to_owned()),
        (
            "memory.totalbytes",
            (RESOURCES.memory_mib << 20).to_string(),
        ),
        ("nomad.service_discovery", "true".to_owned()),
        ("unique.hostname", name.clone()),
    ];
    let tier = if number.is_multiple_of(4) {
        "fast"
    } else {
        "plain"
    };
    let meta = [
        ("rack", format!("r{}", number % racks.max(1))),
        ("tier", tier.to_owned()),
    ];
    let driver = v1::DriverInfo {
        detected: true,
        healthy: true,
        description: "Healthy".to_owned(),
    };
    v1::Node {
        id: text(id),
        name,
        datacenter: "dc1".to_owned(),
        node_pool: "default".to_owned(),
        address: ADDRESS.to_owned(),
        attributes: owned(attributes),
        meta: owned(meta),
        drivers: HashMap::from([("mock_driver".to_owned(), driver)]),
        resources: Some(RESOURCES),
        reserved: Some(v1::NodeResources::default()),
        min_dynamic_port: 20_000,
        max_dynamic_port: 32_000,
        host_ip: "127.0.0.1".to_owned(),
        ..v1::Node::default()
    }
}

fn owned<const N: usize>(pairs: [(&str, String); N]) -> HashMap<String, String> {
    let pairs = pairs.into_iter();
    pairs.map(|(key, value)| (key.to_owned(), value)).collect()
}

pub(super) fn text(id: u128) -> String {
    Uuid::from_u128(id).to_string()
}

pub(super) fn number(text: &str) -> Option<u128> {
    Uuid::parse_str(text).ok().map(|id| id.as_u128())
}

/// Reads an assignment; `None`: its allocation has no readable id.
pub(super) fn read(
    wire: internal::Assignment,
    group: u32,
    script: Arc<Script>,
) -> Option<Assigned> {
    let alloc = wire.allocation?;
    Some(Assigned {
        id: number(&alloc.id)?,
        slot: Slot {
            group,
            index: alloc.name_index,
        },
        index: alloc.alloc_modify_index,
        is_wanted: alloc.desired_status == "run",
        recorded: match alloc.client_status.as_str() {
            "complete" | "failed" => Recorded::Ended,
            "lost" => Recorded::Lost,
            _ => Recorded::Live,
        },
        is_canary: alloc.canary,
        deployment: number(&alloc.deployment_id),
        report_number: wire.report_number,
        script,
    })
}

/// Returns a report as a node writes it. `epoch_ns`: the time of the run's start.
pub(super) fn report(report: &Report, epoch_ns: u64) -> internal::AllocationReport {
    let at = |millis: u64| epoch_ns + millis * 1_000_000;
    let (status, state, exit_code) = match report.phase {
        Phase::Starting => ("pending", "pending", None),
        Phase::Running | Phase::Stopping => ("running", "running", None),
        Phase::Ended { exit_code: 0 } => ("complete", "dead", Some(0)),
        Phase::Ended { exit_code } => ("failed", "dead", Some(exit_code)),
    };
    let has_started = report.started_at > 0;
    let mut events = vec![event(
        "Received",
        at(report.started_at),
        "Task received by node",
    )];
    if has_started {
        let setup = "Building the task's directory";
        events.push(event("Task Setup", at(report.started_at), setup));
        events.push(event("Started", at(report.started_at), "Task started"));
    }
    if let Some(code) = exit_code {
        let mut ended = event(
            "Terminated",
            at(report.ended_at),
            &format!("Exit code: {code}"),
        );
        ended
            .details
            .insert("exit_code".to_owned(), code.to_string());
        events.push(ended);
    }
    let task = v1::TaskState {
        state: state.to_owned(),
        failed: exit_code.is_some_and(|code| code != 0),
        started_at_ns: if has_started {
            at(report.started_at)
        } else {
            0
        },
        finished_at_ns: exit_code.map_or(0, |_| at(report.ended_at)),
        events,
        ..v1::TaskState::default()
    };
    let health = report.healthy_in.map(|deployment| v1::DeploymentHealth {
        healthy: true,
        time_ns: at(report.started_at),
        deployment_id: text(deployment),
    });
    let tasks = report.script.tasks.iter();
    let client = v1::AllocClient {
        status: status.to_owned(),
        task_states: tasks.map(|name| (name.clone(), task.clone())).collect(),
        deployment_health: health,
        report_number: report.number,
        ..v1::AllocClient::default()
    };
    internal::AllocationReport {
        alloc_id: text(report.id),
        client: Some(client),
    }
}

fn event(kind: &str, time_ns: u64, message: &str) -> v1::TaskEvent {
    v1::TaskEvent {
        r#type: kind.to_owned(),
        time_ns,
        display_message: message.to_owned(),
        details: HashMap::new(),
    }
}
