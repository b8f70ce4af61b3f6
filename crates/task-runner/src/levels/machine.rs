//! Memory, cpu time and uptime of the machine, from `/proc`; none on other systems.

use std::fs;

/// Clock ticks a second in `/proc`: 100 on every architecture that Linux shows to user space.
const TICKS_PER_SECOND: f64 = 100.0;

/// In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub total: u64,
    pub free: u64,
    /// Memory that new programs may take without swapping.
    pub available: u64,
}

impl Memory {
    /// Returns the kinds and their bytes; `used` is what cannot be reclaimed.
    pub(crate) fn by_kind(self) -> [(&'static str, u64); 4] {
        [
            ("total", self.total),
            ("available", self.available),
            ("used", self.total.saturating_sub(self.available)),
            ("free", self.free),
        ]
    }
}

pub(crate) fn memory() -> Option<Memory> {
    parse_memory(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Source: proc(5).
fn parse_memory(text: &str) -> Option<Memory> {
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib = line.strip_prefix(':')?.trim().strip_suffix(" kB")?;
        kib.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(Memory {
        total: bytes("MemTotal")?,
        free: bytes("MemFree")?,
        available: bytes("MemAvailable")?,
    })
}

/// Returns the time of all cores by mode, in seconds.
pub(super) fn cpu_seconds() -> Option<[(&'static str, f64); 4]> {
    parse_cpu(&fs::read_to_string("/proc/stat").ok()?)
}

/// Source: proc(5): user, nice, system, idle, iowait.
fn parse_cpu(text: &str) -> Option<[(&'static str, f64); 4]> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut ticks = line.split_ascii_whitespace();
    let mut next = || Some(ticks.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    let (user, nice, system, idle, iowait) = (next()?, next()?, next()?, next()?, next()?);
    Some([
        ("user", user + nice),
        ("system", system),
        ("idle", idle),
        ("iowait", iowait),
    ])
}

pub(crate) fn uptime_seconds() -> Option<i64> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    text.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_read() {
        let text = "MemTotal:  100 kB\nMemFree:  20 kB\nMemAvailable:  60 kB\n";
        let memory = parse_memory(text).unwrap();
        let kinds = memory.by_kind().map(|(kind, bytes)| (kind, bytes / 1024));
        let expected = [
            ("total", 100),
            ("available", 60),
            ("used", 40),
            ("free", 20),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(parse_memory("MemTotal: 100 kB\n"), None);
        let seconds = parse_cpu("cpu  100 50 300 4000 500 0 0 0 0 0\ncpu0 1 2 3 4 5\n").unwrap();
        let expected = [
            ("user", 1.5),
            ("system", 3.0),
            ("idle", 40.0),
            ("iowait", 5.0),
        ];
        assert_eq!(seconds, expected);
    }
}
