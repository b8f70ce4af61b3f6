//! Levels of a node that are read at each scrape: its allocations and their resources, its machine,
//! and on request what each task uses.

pub(crate) mod machine;
mod source;
mod usage;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use model::{ComparableResources, Node};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use service_watch::Services;
use task_drivers::Usage;
use tokio::sync::watch;

pub use self::source::{Reserved, Source};
pub use self::usage::read_usage;
use self::usage::{TaskInUse, tasks_in_use};
use crate::context::Drivers;
use crate::file_system::FileSystem;

const MIB: u64 = 1 << 20;

/// Reads the levels of one node.
pub struct Levels {
    source: Arc<dyn Source>,
    drivers: Drivers,
    node: watch::Receiver<Node>,
    /// The directory of the allocations' files, whose file system is measured.
    alloc_dir: Option<PathBuf>,
    /// True: each task has metrics of its own.
    with_tasks: bool,
    services: Arc<Services>,
}

/// Labels of a task.
type TaskLabels<'a> = [(&'static str, &'a str); 5];

impl Levels {
    pub fn new(
        source: Arc<dyn Source>,
        drivers: Drivers,
        node: watch::Receiver<Node>,
        alloc_dir: Option<PathBuf>,
        with_tasks: bool,
        services: Arc<Services>,
    ) -> Self {
        Self {
            source,
            drivers,
            node,
            alloc_dir,
            with_tasks,
            services,
        }
    }

    fn encode_allocations(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (reserved, available) = (self.source.reserved(), self.node.borrow().available());
        let help = "Allocations without a running task, kept for their files";
        gauge(encoder, "allocations_ended", help, reserved.ended)?;
        let free = available.minus(reserved.allocated);
        for (name, resources) in [("allocated", reserved.allocated), ("unallocated", free)] {
            let what = match name {
                "allocated" => "reserved by allocations that have not ended",
                _ => "that allocations may still reserve",
            };
            for (suffix, unit, value) in amounts(resources) {
                let help = format!("{unit} {what}");
                gauge(encoder, &format!("{name}_{suffix}"), &help, value)?;
            }
        }
        Ok(())
    }

    fn encode_machine(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(memory) = machine::memory() {
            let help = "Memory of the machine, in bytes, by kind";
            let mut family =
                encoder.encode_descriptor("host_memory_bytes", help, None, MetricType::Gauge)?;
            for (kind, bytes) in memory.by_kind() {
                let labels = &[("kind", kind)];
                ConstGauge::new(shown(bytes)).encode(family.encode_family(labels)?)?;
            }
        }
        if let Some(found) = self.alloc_dir.as_deref().and_then(FileSystem::read) {
            let help = "File system with the allocations' files, in bytes, by kind";
            let mut family =
                encoder.encode_descriptor("host_disk_bytes", help, None, MetricType::Gauge)?;
            for (kind, bytes) in [
                ("size", found.size()),
                ("used", found.used()),
                ("available", found.available()),
            ] {
                let labels = &[("kind", kind)];
                ConstGauge::new(shown(bytes)).encode(family.encode_family(labels)?)?;
            }
        }
        if let Some(seconds) = machine::cpu_seconds() {
            let help = "Cpu time of the machine, in seconds, by mode";
            let mut family =
                encoder.encode_descriptor("host_cpu_seconds", help, None, MetricType::Counter)?;
            for (mode, seconds) in seconds {
                let labels = &[("mode", mode)];
                ConstCounter::new(seconds).encode(family.encode_family(labels)?)?;
            }
        }
        if let Some(seconds) = machine::uptime_seconds() {
            let help = "Time since the machine was booted, in seconds";
            gauge(encoder, "host_uptime_seconds", help, seconds)?;
        }
        Ok(())
    }

    fn encode_tasks(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let tasks = tasks_in_use(&self.drivers, &*self.source);
        if tasks.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = tasks.iter().map(|it| it.alloc_id.to_string()).collect();
        let labelled: Vec<(TaskLabels<'_>, &TaskInUse)> = tasks
            .iter()
            .zip(&ids)
            .map(|(task, id)| (labels(task, id), task))
            .collect();
        let help = "Memory of a task, in bytes, by kind";
        let mut family =
            encoder.encode_descriptor("alloc_memory_bytes", help, None, MetricType::Gauge)?;
        for (labels, task) in &labelled {
            for (kind, bytes) in memory(task) {
                let labels = &with(labels, ("kind", kind));
                ConstGauge::new(shown(bytes)).encode(family.encode_family(labels)?)?;
            }
        }
        let help = "Cpu time of a task since its start, in seconds, by mode";
        let mut family =
            encoder.encode_descriptor("alloc_cpu_seconds", help, None, MetricType::Counter)?;
        for (labels, task) in &labelled {
            let modes = [
                ("user", task.usage.cpu_user),
                ("system", task.usage.cpu_system),
            ];
            for (mode, time) in modes {
                let labels = &with(labels, ("mode", mode));
                ConstCounter::new(time.as_secs_f64()).encode(family.encode_family(labels)?)?;
            }
        }
        let help = "Time that a task was held back by its cpu limit, in seconds";
        let name = "alloc_cpu_throttled_seconds";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, task) in &labelled {
            let seconds = task.usage.cpu_throttled.as_secs_f64();
            ConstCounter::new(seconds).encode(family.encode_family(labels)?)?;
        }
        let help = "Periods in which a task was held back by its cpu limit";
        let name = "alloc_cpu_throttled_periods";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, task) in &labelled {
            let periods = task.usage.cpu_throttled_periods;
            ConstCounter::new(periods).encode(family.encode_family(labels)?)?;
        }
        Ok(())
    }
}

impl Collector for Levels {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_allocations(&mut encoder)?;
        self.encode_machine(&mut encoder)?;
        let help = "Age of the answers about services, in seconds; 0 while none is asked for";
        let age = shown(self.services.age().as_secs());
        gauge(&mut encoder, "services_age_seconds", help, age)?;
        if self.with_tasks {
            self.encode_tasks(&mut encoder)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Levels").finish_non_exhaustive()
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: i64) -> fmt::Result {
    let series = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(value).encode(series)
}

/// Suffix of the name, unit of the help, value.
fn amounts(resources: ComparableResources) -> [(&'static str, &'static str, i64); 3] {
    let bytes = |mib: u64| shown(mib.saturating_mul(MIB));
    [
        ("cpu_mhz", "Cpu, in MHz,", shown(resources.cpu_mhz)),
        (
            "memory_bytes",
            "Memory, in bytes,",
            bytes(resources.memory_mib),
        ),
        ("disk_bytes", "Disk, in bytes,", bytes(resources.disk_mib)),
    ]
}

fn shown(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn labels<'a>(task: &'a TaskInUse, alloc_id: &'a str) -> TaskLabels<'a> {
    [
        ("namespace", &task.namespace),
        ("job", &task.job_id),
        ("task_group", &task.task_group),
        ("alloc_id", alloc_id),
        ("task", &task.task),
    ]
}

fn with<'a>(
    labels: &TaskLabels<'a>,
    further: (&'static str, &'a str),
) -> Vec<(&'static str, &'a str)> {
    labels.iter().copied().chain([further]).collect()
}

fn memory(task: &TaskInUse) -> impl Iterator<Item = (&'static str, u64)> + use<> {
    let Usage {
        memory,
        memory_max,
        anonymous,
        file,
        swap,
        ..
    } = task.usage;
    [
        ("allocated", Some(task.memory_mib.saturating_mul(MIB))),
        ("usage", memory),
        ("max_usage", memory_max),
        ("rss", anonymous),
        ("cache", file),
        ("swap", swap),
    ]
    .into_iter()
    .filter_map(|(kind, bytes)| Some((kind, bytes?)))
}
