//! Measurements on request: what the tasks of an allocation and the machine use in a moment.
//!
//! Cpu time is a counter, so a measurement reads twice, [`MOMENT`] apart. The numbers are those of the metrics
//! in [`crate::levels`].

mod host;

pub use crate::levels::machine::Memory;
pub use host::{Core, Disk, Host, host};

use std::collections::BTreeMap;
use std::time::Duration;

use model::AllocId;
use task_drivers::{TaskId, Usage};
use tokio::time::Instant;

use crate::context::{Context, Drivers};

/// The time between the two readings: enough ticks of the kernel's clock (10 ms) for two digits, and little
/// for a person who waits.
const MOMENT: Duration = Duration::from_millis(500);

/// Resources that a task uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskInUse {
    pub usage: Usage,
    /// Cpu time per time, in percent of one core.
    pub cpu_percent: f64,
}

/// Measures the running tasks of an allocation, or one of them, as far as their drivers know their use.
pub async fn tasks(
    context: &Context,
    alloc_id: AllocId,
    task: Option<&str>,
) -> BTreeMap<String, TaskInUse> {
    let first = read(&context.drivers, alloc_id, task).await;
    let begun = Instant::now();
    if first.is_empty() {
        return BTreeMap::new();
    }
    tokio::time::sleep(MOMENT).await;
    let second = read(&context.drivers, alloc_id, task).await;
    let elapsed = begun.elapsed();
    let measured = second.into_iter().filter_map(|(id, usage)| {
        let before = first.get(&id)?;
        let cpu_percent = percent(cpu(&usage).saturating_sub(cpu(before)), elapsed);
        Some((id.task, TaskInUse { usage, cpu_percent }))
    });
    measured.collect()
}

fn cpu(usage: &Usage) -> Duration {
    usage.cpu_user + usage.cpu_system
}

fn percent(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() {
        return 0.0;
    }
    100.0 * part.as_secs_f64() / whole.as_secs_f64()
}

/// Reads the counters of an allocation's tasks once.
async fn read(drivers: &Drivers, alloc_id: AllocId, task: Option<&str>) -> BTreeMap<TaskId, Usage> {
    let mut found = BTreeMap::new();
    for driver in drivers.values() {
        let mut ids = driver.leftovers_of(alloc_id);
        ids.retain(|id| task.is_none_or(|task| id.task == task));
        if ids.is_empty() {
            continue;
        }
        driver.read_usage_of(alloc_id).await;
        let driver = std::sync::Arc::clone(driver);
        // It reads files.
        let read = move || -> Vec<(TaskId, Usage)> {
            let usages = ids.into_iter().filter_map(|id| {
                let usage = driver.usage(&id)?;
                Some((id, usage))
            });
            usages.collect()
        };
        found.extend(blocking::spawn(read).await.unwrap_or_default());
    }
    found
}
