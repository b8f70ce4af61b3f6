//! CPU time and memory of processes, from `/proc`.

use std::fs;
use std::time::Duration;

/// The clock tick of `/proc/PID/stat` on Linux: USER_HZ, 100 on every architecture.
const TICK_MICROS: u64 = 10_000;

/// A process to measure.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) pid: u32,
}

/// A measurement of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// User and system, since its start.
    pub(crate) cpu_micros: u64,
    pub(crate) resident_kib: u64,
    pub(crate) peak_kib: u64,
}

/// A measurement of all processes, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) at: Duration,
    /// `None`: the process has ended.
    pub(crate) usages: Vec<Option<Usage>>,
    pub(crate) assigned: u64,
    pub(crate) reported: u64,
}

pub(crate) fn usage(pid: u32) -> Option<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(Usage {
        cpu_micros: cpu_micros(&stat)?,
        resident_kib: kib(&status, "VmRSS:")?,
        peak_kib: kib(&status, "VmHWM:")?,
    })
}

/// Reads the times of `/proc/PID/stat`. The program's name, in parentheses, may contain anything.
fn cpu_micros(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * TICK_MICROS)
}

fn kib(status: &str, key: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(key))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let stat = "12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 20";
        assert_eq!(cpu_micros(stat), Some(2_000_000));
    }

    #[test]
    fn this_process_is_measured() {
        let own = usage(std::process::id()).unwrap();
        assert!(
            own.resident_kib > 0 && own.peak_kib >= own.resident_kib,
            "{own:?}"
        );
        assert_eq!(usage(u32::MAX), None);
    }
}
