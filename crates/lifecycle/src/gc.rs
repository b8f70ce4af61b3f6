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

impl Reason {
    /// Returns whether it is usual that nothing can be collected for this reason: fewer than twice
    /// [`Thresholds::max_allocs`] live allocations are no reason for a warning.
    pub fn is_expected(self, count: usize, thresholds: Thresholds) -> bool {
        self == Self::Count && count < thresholds.max_allocs * 2
    }
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

/// Checks per repeated warning: at the default interval of a minute, an hour.
const CHECKS_PER_WARNING: u32 = 60;

/// Throttle of the warning that nothing can be collected. A disk filled by other software stays full,
/// and a warning at each check would drown the rest of the log.
#[derive(Debug, Default)]
pub struct WarningThrottle {
    reason: Option<Reason>,
    checks: u32,
}

impl WarningThrottle {
    /// Records a check. Returns whether it warrants a warning.
    pub fn is_due(&mut self, reason: Reason) -> bool {
        if self.reason != Some(reason) || self.checks >= CHECKS_PER_WARNING {
            *self = Self {
                reason: Some(reason),
                checks: 1,
            };
            return true;
        }
        self.checks += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_058_many_live_allocations_are_expected_a_full_disk_is_not() {
        let thresholds = Thresholds {
            disk_percent: 80,
            inode_percent: 70,
            max_allocs: 50,
        };
        for (reason, count, expected) in [
            (Reason::Count, 51, true),
            (Reason::Count, 99, true),
            (Reason::Count, 100, false),
            (Reason::Disk, 51, false),
            (Reason::Inodes, 1, false),
        ] {
            assert_eq!(
                reason.is_expected(count, thresholds),
                expected,
                "{reason:?} {count}"
            );
        }
    }

    #[test]
    fn a_lasting_reason_is_logged_once_an_hour() {
        let mut throttle = WarningThrottle::default();
        let checks = 0..CHECKS_PER_WARNING * 2;
        let logged = checks.filter(|_| throttle.is_due(Reason::Disk)).count();
        assert_eq!(logged, 2);
        assert!(throttle.is_due(Reason::Inodes), "another reason is logged");
        throttle = WarningThrottle::default();
        assert!(
            throttle.is_due(Reason::Inodes),
            "after a reset the same reason is logged"
        );
    }

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
