//! Garbage collection on a node: the reason to make room, and the allocation to remove.

use model::{AllocId, Timestamp};

/// Thresholds above which ended allocations are collected before the servers forget them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    pub disk_percent: u8,
    pub inode_percent: u8,
    /// Allocations on the node, running ones included.
    pub max_allocs: usize,
}

/// Usage of the allocations' file system, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub disk: u64,
    pub inodes: u64,
}

/// The exceeded threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Disk,
    Inodes,
    Count,
}

/// An allocation on the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub alloc_id: AllocId,
    /// The end of its last task; `None` while a task runs, or until the servers have acknowledged the
    /// end.
    pub ended_at: Option<Timestamp>,
}

/// Returns the first exceeded threshold: disk, then inodes, then count.
pub fn reason(thresholds: Thresholds, usage: Usage, count: usize) -> Option<Reason> {
    if usage.disk > u64::from(thresholds.disk_percent) {
        Some(Reason::Disk)
    } else if usage.inodes > u64::from(thresholds.inode_percent) {
        Some(Reason::Inodes)
    } else if count > thresholds.max_allocs {
        Some(Reason::Count)
    } else {
        None
    }
}

/// Returns the allocation to collect: the one that ended first, because the logs of a recent failure
/// are still needed. `None`: all of them run or are not acknowledged.
pub fn choose(candidates: &[Candidate]) -> Option<AllocId> {
    let ended = candidates
        .iter()
        .filter_map(|candidate| Some((candidate.ended_at?, candidate.alloc_id)));
    ended.min().map(|(_, alloc_id)| alloc_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_checked_for_disk_then_inodes_then_count() {
        let thresholds = Thresholds {
            disk_percent: 80,
            inode_percent: 70,
            max_allocs: 50,
        };
        let usage = |disk, inodes| Usage { disk, inodes };
        assert_eq!(
            reason(thresholds, usage(80, 70), 50),
            None,
            "thresholds are reached, not exceeded"
        );
        assert_eq!(reason(thresholds, usage(81, 71), 51), Some(Reason::Disk));
        assert_eq!(reason(thresholds, usage(80, 71), 51), Some(Reason::Inodes));
        assert_eq!(reason(thresholds, usage(80, 70), 51), Some(Reason::Count));
    }

    #[test]
    fn the_allocation_that_ended_first_is_chosen() {
        let candidate = |number, ended_at: Option<u64>| Candidate {
            alloc_id: AllocId::from_random(number),
            ended_at: ended_at.map(Timestamp),
        };
        let candidates = [
            candidate(1, None),
            candidate(2, Some(30)),
            candidate(3, Some(10)),
            candidate(4, Some(20)),
        ];
        assert_eq!(choose(&candidates), Some(AllocId::from_random(3)));
        assert_eq!(choose(&candidates[..2]), Some(AllocId::from_random(2)));
        assert_eq!(choose(&candidates[..1]), None);
    }
}
