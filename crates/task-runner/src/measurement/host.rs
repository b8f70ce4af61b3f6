//! The machine in a moment: memory, cores, file systems on disks.

use std::fs;
use std::path::{Path, PathBuf};

use super::MOMENT;
use crate::file_system::FileSystem;
use crate::levels::machine::{self, Memory};

/// The most file systems of one measurement: machines with containers have many mounts of few disks.
const DISKS_MAX: usize = 64;

/// Resources in use on the machine. Empty on systems without `/proc`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    pub uptime_seconds: u64,
    pub memory: Option<Memory>,
    /// Ordered by number.
    pub cores: Vec<Core>,
    /// Ordered by mount point.
    pub disks: Vec<Disk>,
}

/// Shares of one core's time, in percent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Core {
    /// As in `cpu0`.
    pub name: String,
    pub user: f64,
    pub system: f64,
    /// Waits for disks included.
    pub idle: f64,
}

/// A file system. In bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disk {
    pub device: String,
    pub mount_point: String,
    pub size: u64,
    pub used: u64,
    pub available: u64,
    pub used_percent: f64,
    pub inodes_used_percent: f64,
    /// The allocations' files are on it.
    pub has_allocations: bool,
}

/// Measures the machine.
pub async fn host(alloc_dir: Option<PathBuf>) -> Host {
    let before = times();
    tokio::time::sleep(MOMENT).await;
    let read = move || Host {
        uptime_seconds: machine::uptime_seconds()
            .and_then(|seconds| u64::try_from(seconds).ok())
            .unwrap_or(0),
        memory: machine::memory(),
        cores: shares(&before, &times()),
        disks: disks(alloc_dir.as_deref()),
    };
    blocking::spawn(read).await.unwrap_or_default()
}

/// Clock ticks of one core since the boot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Times {
    name: String,
    user: u64,
    system: u64,
    idle: u64,
    total: u64,
}

fn times() -> Vec<Times> {
    parse_times(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// Source: proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
fn parse_times(text: &str) -> Vec<Times> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?;
        let number = name.strip_prefix("cpu")?;
        number.parse::<u32>().ok()?;
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).take(8).collect();
        let [user, nice, system, idle, iowait, ..] = ticks[..] else {
            return None;
        };
        Some(Times {
            name: name.to_owned(),
            user: user + nice,
            system,
            idle: idle + iowait,
            total: ticks.iter().sum(),
        })
    };
    text.lines().filter_map(line).collect()
}

/// Compares two readings. A core that is only in one of them has gone off or on meanwhile.
#[expect(clippy::cast_precision_loss, reason = "ticks of a moment are few")]
fn shares(before: &[Times], after: &[Times]) -> Vec<Core> {
    let core = |now: &Times| {
        let then = before.iter().find(|then| then.name == now.name)?;
        let total = now.total.saturating_sub(then.total).max(1);
        let share = |now: u64, then: u64| 100.0 * now.saturating_sub(then) as f64 / total as f64;
        Some(Core {
            name: now.name.clone(),
            user: share(now.user, then.user),
            system: share(now.system, then.system),
            idle: share(now.idle, then.idle),
        })
    };
    after.iter().filter_map(core).collect()
}

fn disks(alloc_dir: Option<&Path>) -> Vec<Disk> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let alloc_dir = alloc_dir.and_then(|path| path.canonicalize().ok());
    let mounts = chosen(&text, alloc_dir.as_deref());
    mounts.into_iter().filter_map(disk).collect()
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    device: String,
    point: String,
    has_allocations: bool,
}

/// Returns the first mount of each disk, and the mount with the allocations' files, whatever it is. Others, such as
/// network file systems, may hang.
fn chosen(mounts: &str, alloc_dir: Option<&Path>) -> Vec<Mount> {
    let mut chosen: Vec<Mount> = Vec::new();
    let read = |line: &str| {
        let mut words = line.split(' ').map(unescape);
        Some((words.next()?, words.next()?))
    };
    let all: Vec<(String, String)> = mounts.lines().filter_map(read).collect();
    let depth = |point: &str| Path::new(point).components().count();
    let own = all
        .iter()
        .filter(|(_, point)| alloc_dir.is_some_and(|path| path.starts_with(point)))
        // The later one covers the earlier one.
        .max_by_key(|(_, point)| depth(point));
    for mount @ (device, point) in &all {
        let has_allocations = own == Some(mount);
        let known = chosen.iter().position(|it| it.device == *device);
        if let Some(known) = known {
            chosen[known].has_allocations |= has_allocations;
        } else if (device.starts_with("/dev/") || has_allocations) && chosen.len() < DISKS_MAX {
            chosen.push(Mount {
                device: device.clone(),
                point: point.clone(),
                has_allocations,
            });
        }
    }
    chosen.sort_by(|a, b| a.point.cmp(&b.point));
    chosen
}

/// Replaces the escapes of `/proc/mounts`: space, tab, newline and backslash in octal.
fn unescape(word: &str) -> String {
    word.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

fn disk(mount: Mount) -> Option<Disk> {
    let found = FileSystem::read(Path::new(&mount.point))?;
    Some(Disk {
        size: found.size(),
        used: found.used(),
        available: found.available(),
        used_percent: found.disk_share().percent(),
        inodes_used_percent: found.inode_share().percent(),
        device: mount.device,
        mount_point: mount.point,
        has_allocations: mount.has_allocations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_time_between_two_readings() {
        let before = parse_times("cpu  9 9 9 9 9\ncpu0 100 0 100 700 100 0 0 0 5 5\nintr 1\n");
        assert_eq!((before.len(), before[0].total), (1, 1000));
        let after = parse_times("cpu0 120 5 110 750 115 0 0 0 9 9\ncpu1 1 1 1 1 1\n");
        let expected = Core {
            name: "cpu0".to_owned(),
            user: 25.0,
            system: 10.0,
            idle: 65.0,
        };
        assert_eq!(shares(&before, &after), [expected]);
    }

    #[test]
    fn each_disk_counts_once_and_the_allocations_file_system_always() {
        let mounts = "overlay / overlay rw 0 0\n/dev/sda1 /etc/hosts ext4 rw 0 0\n\
                      /dev/sda1 /data ext4 rw 0 0\n/dev/sdb1 /my\\040disk ext4 rw 0 0\n\
                      nfs:/x /net nfs rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n";
        let of = |alloc_dir: &str| -> Vec<(String, bool)> {
            let chosen = chosen(mounts, Some(Path::new(alloc_dir)));
            chosen
                .into_iter()
                .map(|it| (it.point, it.has_allocations))
                .collect()
        };
        let disk = |point: &str, has| (point.to_owned(), has);
        assert_eq!(
            of("/data/alloc"),
            [disk("/etc/hosts", true), disk("/my disk", false)]
        );
        assert_eq!(
            of("/srv/alloc"),
            [
                disk("/", true),
                disk("/etc/hosts", false),
                disk("/my disk", false)
            ]
        );
    }

    #[tokio::test]
    async fn this_machine_is_measured() {
        let host = host(Some(std::env::temp_dir())).await;
        assert!(host.memory.is_some() && host.uptime_seconds > 0);
        assert!(!host.cores.is_empty());
        for core in &host.cores {
            let sum = core.user + core.system + core.idle;
            assert!((0.0..=100.5).contains(&sum), "{core:?}");
        }
        let own: Vec<_> = host.disks.iter().filter(|it| it.has_allocations).collect();
        assert!(own.len() == 1 && own[0].size > 0, "{:?}", host.disks);
    }
}
