//! Memory size: the machine's, or the container's limit when that is lower.

use crate::attributes::{Attributes, read};

const MIB: u64 = 1024 * 1024;

/// Returns the memory size in MiB; a `total_mib` other than 0 overrides it.
pub(crate) fn fingerprint(total_mib: u64, attributes: &mut Attributes) -> u64 {
    let bytes = if total_mib > 0 {
        total_mib * MIB
    } else {
        found()
    };
    attributes.insert("memory.totalbytes".to_owned(), bytes.to_string());
    bytes / MIB
}

/// Source: proc(5) and the kernel's cgroup-v2, `memory.max`.
fn found() -> u64 {
    let machine = total(&read("/proc/meminfo")).unwrap_or(0);
    read("/sys/fs/cgroup/memory.max")
        .parse()
        .map_or(machine, |limit: u64| machine.min(limit))
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read() {
        assert_eq!(
            total("MemTotal:       24000 kB\nMemFree: 1 kB\n"),
            Some(24_576_000)
        );
        assert_eq!(total("MemFree: 1 kB\n"), None);
    }
}
