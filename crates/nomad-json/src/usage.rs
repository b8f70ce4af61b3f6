//! Usage of tasks and machines, with the keys of Nomad's statistics.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::v1;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AllocUsage<'a> {
    /// The sum over the tasks.
    resource_usage: ResourceUsage,
    tasks: BTreeMap<&'a str, TaskUsage>,
    /// Unix nanoseconds.
    timestamp: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TaskUsage {
    resource_usage: ResourceUsage,
    timestamp: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ResourceUsage {
    cpu_stats: CpuStats,
    memory_stats: MemoryStats,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct CpuStats {
    percent: f64,
    /// In MHz.
    total_ticks: f64,
    throttled_periods: u64,
    /// Nanoseconds.
    throttled_time: u64,
}

/// In bytes; 0: unknown.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct MemoryStats {
    #[serde(rename = "RSS")]
    rss: u64,
    cache: u64,
    swap: u64,
    usage: u64,
    max_usage: u64,
}

impl<'a> From<&'a v1::GetAllocationStatsResponse> for AllocUsage<'a> {
    fn from(stats: &'a v1::GetAllocationStatsResponse) -> Self {
        let timestamp = stats.measured_at_ns;
        let tasks: BTreeMap<&str, TaskUsage> = stats
            .tasks
            .iter()
            .map(|(name, usage)| {
                let resource_usage = usage.into();
                let usage = TaskUsage {
                    resource_usage,
                    timestamp,
                };
                (name.as_str(), usage)
            })
            .collect();
        let sum = tasks.values().fold(ResourceUsage::default(), |sum, task| {
            sum.plus(task.resource_usage)
        });
        Self {
            resource_usage: sum,
            tasks,
            timestamp,
        }
    }
}

impl From<&v1::TaskUsage> for ResourceUsage {
    fn from(usage: &v1::TaskUsage) -> Self {
        let cpu = usage.cpu.unwrap_or_default();
        let memory = usage.memory.unwrap_or_default();
        let throttled = Duration::try_from_secs_f64(cpu.throttled_seconds);
        let throttled = throttled.unwrap_or_default().as_nanos();
        Self {
            cpu_stats: CpuStats {
                percent: cpu.percent,
                total_ticks: cpu.mhz,
                throttled_periods: cpu.throttled_periods,
                throttled_time: u64::try_from(throttled).unwrap_or(u64::MAX),
            },
            memory_stats: MemoryStats {
                rss: memory.rss.unwrap_or(0),
                cache: memory.cache.unwrap_or(0),
                swap: memory.swap.unwrap_or(0),
                usage: memory.usage.unwrap_or(0),
                max_usage: memory.max_usage.unwrap_or(0),
            },
        }
    }
}

impl ResourceUsage {
    fn plus(self, other: Self) -> Self {
        let (cpu, memory) = (self.cpu_stats, self.memory_stats);
        let (more_cpu, more) = (other.cpu_stats, other.memory_stats);
        Self {
            cpu_stats: CpuStats {
                percent: cpu.percent + more_cpu.percent,
                total_ticks: cpu.total_ticks + more_cpu.total_ticks,
                throttled_periods: cpu.throttled_periods + more_cpu.throttled_periods,
                throttled_time: cpu.throttled_time.saturating_add(more_cpu.throttled_time),
            },
            memory_stats: MemoryStats {
                rss: memory.rss + more.rss,
                cache: memory.cache + more.cache,
                swap: memory.swap + more.swap,
                usage: memory.usage + more.usage,
                max_usage: memory.max_usage + more.max_usage,
            },
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct HostUsage<'a> {
    memory: Memory,
    #[serde(rename = "CPU")]
    cpu: Vec<Core<'a>>,
    disk_stats: Vec<Disk<'a>>,
    /// The file system with the allocations' files.
    alloc_dir_stats: Option<Disk<'a>>,
    /// Seconds.
    uptime: u64,
    /// Unix nanoseconds.
    timestamp: u64,
    /// In MHz.
    #[serde(rename = "CPUTicksConsumed")]
    cpu_ticks_consumed: f64,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Memory {
    total: u64,
    available: u64,
    used: u64,
    free: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Core<'a> {
    #[serde(rename = "CPU")]
    name: &'a str,
    user: f64,
    system: f64,
    idle: f64,
    total_percent: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Disk<'a> {
    device: &'a str,
    mountpoint: &'a str,
    size: u64,
    used: u64,
    available: u64,
    used_percent: f64,
    inodes_used_percent: f64,
}

impl<'a> From<&'a v1::NodeUsage> for HostUsage<'a> {
    fn from(usage: &'a v1::NodeUsage) -> Self {
        let memory = usage.memory.map(|memory| Memory {
            total: memory.total,
            available: memory.available,
            used: memory.used,
            free: memory.free,
        });
        let own = usage.disks.iter().find(|disk| disk.has_allocations);
        Self {
            memory: memory.unwrap_or_default(),
            cpu: usage.cores.iter().map(Core::from).collect(),
            disk_stats: usage.disks.iter().map(Disk::from).collect(),
            alloc_dir_stats: own.map(Disk::from),
            uptime: usage.uptime_seconds,
            timestamp: usage.measured_at_ns,
            cpu_ticks_consumed: usage.cpu_mhz,
        }
    }
}

impl<'a> From<&'a v1::NodeCoreUsage> for Core<'a> {
    fn from(core: &'a v1::NodeCoreUsage) -> Self {
        Self {
            name: &core.name,
            user: core.user_percent,
            system: core.system_percent,
            idle: core.idle_percent,
            total_percent: 100.0 - core.idle_percent,
        }
    }
}

impl<'a> From<&'a v1::NodeDiskUsage> for Disk<'a> {
    fn from(disk: &'a v1::NodeDiskUsage) -> Self {
        Self {
            device: &disk.device,
            mountpoint: &disk.mount_point,
            size: disk.size,
            used: disk.used,
            available: disk.available,
            used_percent: disk.used_percent,
            inodes_used_percent: disk.inodes_used_percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_allocation_uses_the_sum_of_its_tasks() {
        let task = |percent, usage| v1::TaskUsage {
            cpu: Some(v1::TaskCpuUsage {
                percent,
                mhz: percent * 20.0,
                throttled_seconds: 0.5,
                throttled_periods: 2,
                ..v1::TaskCpuUsage::default()
            }),
            memory: Some(v1::TaskMemoryUsage {
                usage: Some(usage),
                rss: Some(7),
                ..v1::TaskMemoryUsage::default()
            }),
        };
        let tasks = [("a", task(10.0, 100)), ("b", task(5.0, 50))];
        let stats = v1::GetAllocationStatsResponse {
            tasks: tasks.map(|(name, usage)| (name.to_owned(), usage)).into(),
            measured_at_ns: 9,
        };
        let json = serde_json::to_value(AllocUsage::from(&stats)).unwrap();
        assert_eq!(
            json["ResourceUsage"],
            json!({
                "CpuStats": {
                    "Percent": 15.0, "TotalTicks": 300.0, "ThrottledPeriods": 4,
                    "ThrottledTime": 1_000_000_000
                },
                "MemoryStats": {"RSS": 14, "Cache": 0, "Swap": 0, "Usage": 150, "MaxUsage": 0}
            })
        );
        assert_eq!(
            json["Tasks"]["a"]["ResourceUsage"]["MemoryStats"]["Usage"],
            100
        );
        assert_eq!(json["Timestamp"], 9);
    }

    #[test]
    fn a_machine_has_the_keys_of_nomads_statistics() {
        let usage = v1::NodeUsage {
            uptime_seconds: 60,
            cores: vec![v1::NodeCoreUsage {
                name: "cpu0".to_owned(),
                user_percent: 20.0,
                system_percent: 5.0,
                idle_percent: 75.0,
            }],
            disks: vec![v1::NodeDiskUsage {
                mount_point: "/data".to_owned(),
                has_allocations: true,
                ..v1::NodeDiskUsage::default()
            }],
            ..v1::NodeUsage::default()
        };
        let json = serde_json::to_value(HostUsage::from(&usage)).unwrap();
        assert_eq!(json["CPU"][0]["TotalPercent"], 25.0);
        assert_eq!(json["AllocDirStats"]["Mountpoint"], "/data");
        assert_eq!(json["DiskStats"].as_array().map(Vec::len), Some(1));
        assert_eq!(json["Uptime"], 60);
    }
}
