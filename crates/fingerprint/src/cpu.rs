//! CPU attributes: architecture, model, number of cores and their speed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use task_drivers::core_list;

use crate::attributes::{Attributes, read};

/// The speed of a core when neither sysfs nor cpuinfo tells it. Low, so that no job gets less
/// compute than it was promised.
const DEFAULT_MHZ: u64 = 1_000;

/// Returns the sum over all cores, in MHz; a `total` other than 0 overrides it.
pub(crate) fn fingerprint(total: u64, attributes: &mut Attributes) -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let core_mhz = core_mhz();
    let total = if total > 0 {
        total
    } else {
        limited(cores * core_mhz, core_mhz)
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    for (name, value) in [
        ("cpu.arch", arch.to_owned()),
        ("cpu.modelname", cpuinfo("model name").unwrap_or_default()),
        ("cpu.numcores", cores.to_string()),
        ("cpu.frequency", core_mhz.to_string()),
        ("cpu.totalcompute", total.to_string()),
        ("cpu.usablecompute", total.to_string()),
    ] {
        attributes.insert(name.to_owned(), value);
    }
    total
}

/// Returns the first core's speed.
fn core_mhz() -> u64 {
    mhz_of(0)
}

/// Returns this process's affinity mask. Source: proc(5).
pub(crate) fn allowed_cores() -> BTreeSet<u16> {
    let text = read("/proc/self/status");
    let mut lines = text.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cores = list.and_then(core_list::parse).unwrap_or_default();
    cores.into_iter().collect()
}

/// Returns the base frequency, else the highest, else the current one, else the default. sysfs has
/// kHz.
pub(crate) fn mhz_of(core: u16) -> u64 {
    let sysfs = PathBuf::from(format!("/sys/devices/system/cpu/cpu{core}/cpufreq"));
    for file in ["base_frequency", "cpuinfo_max_freq"] {
        if let Ok(khz) = read(sysfs.join(file)).parse::<u64>() {
            return khz / 1_000;
        }
    }
    let current = cpuinfo("cpu MHz").and_then(|text| text.split('.').next()?.parse().ok());
    current.unwrap_or(DEFAULT_MHZ)
}

/// Returns the first core's value in `/proc/cpuinfo`.
fn cpuinfo(name: &str) -> Option<String> {
    let text = read("/proc/cpuinfo");
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Applies a container's CPU quota. Source: the kernel's cgroup-v2, `cpu.max`.
fn limited(total: u64, core_mhz: u64) -> u64 {
    let text = read("/sys/fs/cgroup/cpu.max");
    limit(&text).map_or(total, |(quota, period)| {
        total.min(quota * core_mhz / period.max(1))
    })
}

fn limit(text: &str) -> Option<(u64, u64)> {
    let (quota, period) = text.split_once(' ')?;
    Some((quota.parse().ok()?, period.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_read_and_max_means_none() {
        assert_eq!(limit("150000 100000"), Some((150_000, 100_000)));
        assert_eq!(limit("max 100000"), None);
        assert_eq!(limit(""), None);
    }
}
