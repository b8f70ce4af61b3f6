//! Usage of running containers, read from the engine and kept for the agent's metrics.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::ContainerStatsResponse;
use futures::StreamExt as _;
use futures::stream;
use model::AllocId;
use task_drivers::{TaskId, Usage};
use tokio::time::timeout;
use tracing::debug;

use crate::tasks::Docker;

/// Containers that are read at one time: the engine reads files for each, and also serves starts.
const AT_ONCE: usize = 4;
/// Timeout of one container. Docker collects the numbers once a second, and an answer waits for the next
/// collection: measured with 20.10, 1.0 s. Podman answers within milliseconds.
const READ_LIMIT: Duration = Duration::from_secs(5);

impl Docker {
    /// Reads the use of all running containers, once each. A container that cannot be read is unknown
    /// until the next time.
    pub(crate) async fn read_usage(&self) {
        let found = self.read_tasks(self.records.all()).await;
        self.set_usage(found);
    }

    /// Reads the use of the running containers of one allocation. What is known of others stays.
    pub(crate) async fn read_usage_of(&self, alloc_id: AllocId) {
        let found = self.read_tasks(self.records.of(alloc_id)).await;
        self.set_usage_of(alloc_id, found);
    }

    /// Reads the containers of these attempts. Those that have ended have records, too: their containers
    /// do not run.
    async fn read_tasks(&self, ids: Vec<TaskId>) -> HashMap<TaskId, Usage> {
        let reads = stream::iter(ids).map(|id| async move {
            let record = self.records.get(&id)?;
            if record.boot_id != self.boot_id {
                return None;
            }
            match timeout(READ_LIMIT, self.engine.stats(&record.name)).await {
                Ok(Ok(stats)) => Some((id, read(&stats?)?)),
                Ok(Err(problem)) => {
                    debug!(%id, %problem, "cannot read what a container uses");
                    None
                }
                Err(_) => {
                    debug!(%id, "the engine does not say in time what a container uses");
                    None
                }
            }
        });
        let found: Vec<Option<(TaskId, Usage)>> = reads.buffer_unordered(AT_ONCE).collect().await;
        found.into_iter().flatten().collect()
    }
}

/// Converts the engine's answer; `None`: the container does not run.
///
/// Source: the Engine API, and the kernel's names in `memory.stat` of cgroup versions 1 and 2.
fn read(stats: &ContainerStatsResponse) -> Option<Usage> {
    let cpu = stats.cpu_stats.as_ref()?;
    let used = cpu.cpu_usage.as_ref()?;
    // A container that does not run has zeros.
    used.total_usage.filter(|total| *total > 0)?;
    let throttled = cpu.throttling_data.clone().unwrap_or_default();
    let memory = stats.memory_stats.clone().unwrap_or_default();
    let kinds = memory.stats.unwrap_or_default();
    let kind = |names: [&str; 2]| names.iter().find_map(|name| kinds.get(*name)).copied();
    Some(Usage {
        cpu_user: Duration::from_nanos(used.usage_in_usermode.unwrap_or(0)),
        cpu_system: Duration::from_nanos(used.usage_in_kernelmode.unwrap_or(0)),
        cpu_throttled: Duration::from_nanos(throttled.throttled_time.unwrap_or(0)),
        cpu_throttled_periods: throttled.throttled_periods.unwrap_or(0),
        memory: memory.usage,
        memory_max: memory.max_usage,
        anonymous: kind(["anon", "total_rss"]),
        file: kind(["file", "total_cache"]),
        swap: kind(["swap", "total_swap"]),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(answer: serde_json::Value) -> Option<Usage> {
        read(&serde_json::from_value(answer).unwrap())
    }

    #[test]
    fn both_versions_of_control_groups_are_read() {
        let cpu = json!({
            "cpu_usage": {
                "total_usage": 5_000, "usage_in_usermode": 3_000, "usage_in_kernelmode": 2_000
            },
            "throttling_data": {"periods": 9, "throttled_periods": 4, "throttled_time": 700}
        });
        let second = usage(json!({
            "cpu_stats": cpu,
            "memory_stats": {"usage": 100, "stats": {"anon": 60, "file": 40}}
        }));
        let expected = Usage {
            cpu_user: Duration::from_nanos(3_000),
            cpu_system: Duration::from_nanos(2_000),
            cpu_throttled: Duration::from_nanos(700),
            cpu_throttled_periods: 4,
            memory: Some(100),
            memory_max: None,
            anonymous: Some(60),
            file: Some(40),
            swap: None,
        };
        assert_eq!(second, Some(expected));
        let first = usage(json!({
            "cpu_stats": cpu,
            "memory_stats": {
                "usage": 100, "max_usage": 130,
                "stats": {"total_rss": 60, "total_cache": 40, "total_swap": 7, "rss": 1}
            }
        }));
        let expected = Usage {
            memory_max: Some(130),
            swap: Some(7),
            ..expected
        };
        assert_eq!(first, Some(expected));
    }

    #[test]
    fn a_container_that_does_not_run_uses_nothing_known() {
        assert_eq!(usage(json!({})), None);
        let zeros = json!({"cpu_stats": {"cpu_usage": {"total_usage": 0}}, "memory_stats": {}});
        assert_eq!(usage(zeros), None);
    }
}
