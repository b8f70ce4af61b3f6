//! Resources that a task uses, from the plugin's samples while the task is waited for.

use std::convert::Infallible;
use std::time::Duration;

use task_drivers::{TaskId, Usage};
use tokio::time::{Instant, sleep};

use crate::plugin::Plugin;
use crate::task::wire_duration;
use crate::wire::drivers::memory_usage::Fields;
use crate::wire::drivers::{TaskResourceUsage, TaskStatsRequest};

/// Interval of the samples. Source: Nomad's default.
const INTERVAL: Duration = Duration::from_secs(1);
/// Pause before samples are asked for again.
const PAUSE: Duration = Duration::from_secs(10);

impl Plugin {
    /// Keeps the task's last sample.
    pub(crate) async fn follow_usage(&self, id: &TaskId, task_id: &str) -> Infallible {
        loop {
            let instance = self.next_instance().await;
            let request = TaskStatsRequest {
                task_id: task_id.to_owned(),
                collection_interval: Some(wire_duration(INTERVAL)),
            };
            if let Ok(stream) = instance.driver().task_stats(request).await {
                let mut stream = stream.into_inner();
                let mut last = Instant::now();
                let mut usage = self.usage(id).unwrap_or_default();
                while let Ok(Some(sample)) = stream.message().await {
                    let found = sample.stats.and_then(|stats| stats.agg_resource_usage);
                    let since = last.elapsed();
                    last += since;
                    usage = add(usage, found.unwrap_or_default(), since);
                    self.set_usage(id, Some(usage));
                }
            }
            sleep(PAUSE).await;
        }
    }
}

/// Adds a sample. The plugin gives percents of a core, which add up to time.
fn add(usage: Usage, sample: TaskResourceUsage, since: Duration) -> Usage {
    let cpu = sample.cpu.unwrap_or_default();
    let memory = sample.memory.unwrap_or_default();
    let time = |percent: f64| {
        // A plugin may send any number; no machine has so many cores.
        let share = if percent.is_finite() {
            percent.clamp(0.0, 1e6) / 100.0
        } else {
            0.0
        };
        since.mul_f64(share)
    };
    let fields: Vec<Fields> = memory.measured_fields().collect();
    let measured = |field: Fields, value: u64| fields.contains(&field).then_some(value);
    let rest = (cpu.percent - cpu.user_mode - cpu.system_mode).max(0.0);
    // Plugins that do not separate them have all of it in `percent`.
    let is_split = cpu.user_mode > 0.0 || cpu.system_mode > 0.0;
    let user = if is_split { cpu.user_mode } else { rest };
    Usage {
        cpu_user: usage.cpu_user.saturating_add(time(user)),
        cpu_system: usage.cpu_system.saturating_add(time(cpu.system_mode)),
        cpu_throttled: Duration::from_nanos(cpu.throttled_time),
        cpu_throttled_periods: cpu.throttled_periods,
        memory: measured(Fields::Usage, memory.usage).or(measured(Fields::Rss, memory.rss)),
        memory_max: measured(Fields::MaxUsage, memory.max_usage),
        anonymous: measured(Fields::Rss, memory.rss),
        file: measured(Fields::Cache, memory.cache),
        swap: measured(Fields::Swap, memory.swap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::drivers::{CpuUsage, MemoryUsage};

    #[test]
    fn percents_add_up_to_time_and_only_measured_fields_are_known() {
        let sample = |percent| TaskResourceUsage {
            cpu: Some(CpuUsage {
                percent,
                ..CpuUsage::default()
            }),
            memory: Some(MemoryUsage {
                rss: 4_096,
                cache: 7,
                measured_fields: vec![Fields::Rss.into()],
                ..MemoryUsage::default()
            }),
        };
        let second = Duration::from_secs(1);
        let first = add(Usage::default(), sample(50.0), second);
        let both = add(first, sample(200.0), second);
        assert_eq!(both.cpu_user, Duration::from_millis(2_500));
        assert_eq!(
            (both.memory, both.anonymous, both.file),
            (Some(4_096), Some(4_096), None)
        );
        let wild = add(both, sample(f64::NAN), second);
        assert_eq!(wild.cpu_user, both.cpu_user);
    }
}
