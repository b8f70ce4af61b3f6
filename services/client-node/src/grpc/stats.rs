//! Measurements of tasks and of the machine.

use std::sync::Arc;

use model::Node;
use proto::v1;
use task_runner::measurement::{self, Core, Disk, Host, TaskInUse};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use super::operations::{MEASUREMENT_SLOTS, Operations, not_here, read_alloc_id};

/// Measures the tasks of an allocation.
///
/// # Errors
/// The request is invalid, or the allocation is not on this node.
pub(super) async fn tasks(
    operations: &Operations,
    request: v1::GetAllocationStatsRequest,
) -> Result<v1::GetAllocationStatsResponse, Status> {
    let _slot = slot(&operations.measurement_slots)?;
    let alloc_id = read_alloc_id(&request.alloc_id)?;
    if operations.agent.find(alloc_id).is_none() {
        return Err(not_here(alloc_id));
    }
    let task = (!request.task.is_empty()).then_some(request.task.as_str());
    let context = &operations.context.tasks;
    let measured = measurement::tasks(context, alloc_id, task).await;
    let core_mhz = core_mhz(&operations.node.borrow());
    let tasks = measured
        .into_iter()
        .map(|(name, used)| (name, task_usage(&used, core_mhz)));
    Ok(v1::GetAllocationStatsResponse {
        tasks: tasks.collect(),
        measured_at_ns: context.clocks.wall().0,
    })
}

/// Measures the machine.
///
/// # Errors
/// As many measurements as may be are in progress.
pub(super) async fn host(operations: &Operations) -> Result<v1::GetNodeStatsResponse, Status> {
    let _slot = slot(&operations.measurement_slots)?;
    let context = &operations.context.tasks;
    let host = measurement::host(context.alloc_dir.clone()).await;
    let core_mhz = core_mhz(&operations.node.borrow());
    let usage = v1::NodeUsage {
        measured_at_ns: context.clocks.wall().0,
        ..node_usage(host, core_mhz)
    };
    let usage = Some(usage);
    Ok(v1::GetNodeStatsResponse { usage })
}

fn slot(slots: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Status> {
    Arc::clone(slots).try_acquire_owned().map_err(|_| {
        Status::resource_exhausted(format!(
            "the node makes as many measurements as it may ({MEASUREMENT_SLOTS}); try again"
        ))
    })
}

/// Returns the speed of one core of the node, 0 if it is unknown.
#[expect(clippy::cast_precision_loss, reason = "a speed has few digits")]
fn core_mhz(node: &Node) -> f64 {
    let cores = node.attributes.get("cpu.numcores");
    let cores = cores.and_then(|text| text.parse::<f64>().ok());
    match cores {
        Some(cores) if cores > 0.0 => node.resources.cpu_mhz as f64 / cores,
        _ => 0.0,
    }
}

fn task_usage(used: &TaskInUse, core_mhz: f64) -> v1::TaskUsage {
    let usage = used.usage;
    v1::TaskUsage {
        cpu: Some(v1::TaskCpuUsage {
            percent: used.cpu_percent,
            mhz: used.cpu_percent / 100.0 * core_mhz,
            user_seconds: usage.cpu_user.as_secs_f64(),
            system_seconds: usage.cpu_system.as_secs_f64(),
            throttled_seconds: usage.cpu_throttled.as_secs_f64(),
            throttled_periods: usage.cpu_throttled_periods,
        }),
        memory: Some(v1::TaskMemoryUsage {
            usage: usage.memory,
            max_usage: usage.memory_max,
            rss: usage.anonymous,
            cache: usage.file,
            swap: usage.swap,
        }),
    }
}

fn node_usage(host: Host, core_mhz: f64) -> v1::NodeUsage {
    let busy: f64 = host.cores.iter().map(|core| 100.0 - core.idle).sum();
    v1::NodeUsage {
        measured_at_ns: 0,
        uptime_seconds: host.uptime_seconds,
        memory: host.memory.map(|memory| v1::NodeMemoryUsage {
            total: memory.total,
            available: memory.available,
            used: memory.total.saturating_sub(memory.available),
            free: memory.free,
        }),
        cores: host.cores.into_iter().map(core).collect(),
        cpu_mhz: busy / 100.0 * core_mhz,
        disks: host.disks.into_iter().map(disk).collect(),
    }
}

fn core(core: Core) -> v1::NodeCoreUsage {
    v1::NodeCoreUsage {
        name: core.name,
        user_percent: core.user,
        system_percent: core.system,
        idle_percent: core.idle,
    }
}

fn disk(disk: Disk) -> v1::NodeDiskUsage {
    v1::NodeDiskUsage {
        device: disk.device,
        mount_point: disk.mount_point,
        size: disk.size,
        used: disk.used,
        available: disk.available,
        used_percent: disk.used_percent,
        inodes_used_percent: disk.inodes_used_percent,
        has_allocations: disk.has_allocations,
    }
}
