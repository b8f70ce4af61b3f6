//! Metrics of the process itself, read from `/proc` at each scrape; none on other systems.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Clock ticks a second in `/proc`: 100 on every architecture that Linux shows to user space.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(crate) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(seconds) = cpu_seconds() {
            let metric = ConstCounter::new(seconds);
            let help = "User and system time spent, in seconds";
            let encoder = encoder.encode_descriptor(
                "process_cpu_seconds",
                help,
                None,
                metric.metric_type(),
            )?;
            metric.encode(encoder)?;
        }
        for (name, help, value) in [
            (
                "process_resident_memory_bytes",
                "Resident memory, in bytes",
                resident_bytes(),
            ),
            ("process_open_fds", "Open file descriptors", open_files()),
        ] {
            if let Some(value) = value {
                let metric = ConstGauge::new(value);
                let encoder = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
                metric.encode(encoder)?;
            }
        }
        Ok(())
    }
}

fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The command's name comes second, in parentheses, and may hold spaces: count from its end,
    // where utime and stime are the twelfth and thirteenth.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user = fields.next()?.parse::<f64>().ok()?;
    let system = fields.next()?.parse::<f64>().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()?;
    kib.checked_mul(1024)
}

fn open_files() -> Option<i64> {
    let files = std::fs::read_dir("/proc/self/fd").ok()?;
    i64::try_from(files.count()).ok()
}
