//! The replica that maintains etcd: the leader, or a deputy.
//!
//! At its quota etcd refuses the lease and the key of an election, so without a leader, standby
//! replicas perform the actions that make etcd writable again: two of them may act at once, which
//! costs only time.

use std::time::Duration;

use model::Timestamp;
use model::etcd::EtcdMember;

/// The number of intervals for which the replicas wait for a leader before one of them acts in its
/// place.
const WITHOUT_LEADER: u32 = 2;

/// A replica's part in the maintenance of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceRole {
    /// It maintains etcd.
    Leader,
    /// There has been no leader for a while: it acts while etcd is out of space.
    Deputy,
    /// Another replica acts, or is about to.
    Standby,
}

impl MaintenanceRole {
    /// Returns whether the replica acts on members with this status. Without a full one the next
    /// election succeeds, and the deputy leaves everything to the leader.
    pub fn acts(self, members: &[EtcdMember]) -> bool {
        match self {
            Self::Leader => true,
            Self::Deputy => members.iter().any(|member| member.is_out_of_space),
            Self::Standby => false,
        }
    }
}

/// Decides when a replica without a leader becomes the deputy.
#[derive(Clone, Debug)]
pub struct Deputy {
    wait: Duration,
    leaderless_since: Option<Timestamp>,
}

impl Deputy {
    /// `interval` is that of the looks at the members. `draw`, of 0 to 1, is random, so that one
    /// replica acts first and the others find it done.
    pub fn new(interval: Duration, draw: f64) -> Self {
        let wait = interval * WITHOUT_LEADER;
        Self {
            wait: wait + wait.mul_f64(draw.clamp(0.0, 1.0)),
            leaderless_since: None,
        }
    }

    /// Returns the role of this replica. `now` is a clock without steps; `has_leader`: any replica
    /// leads, as far as this one knows.
    pub fn role(&mut self, now: Timestamp, leads: bool, has_leader: bool) -> MaintenanceRole {
        if leads || has_leader {
            self.leaderless_since = None;
            return if leads {
                MaintenanceRole::Leader
            } else {
                MaintenanceRole::Standby
            };
        }
        let since = *self.leaderless_since.get_or_insert(now);
        if now.since(since) >= self.wait {
            MaintenanceRole::Deputy
        } else {
            MaintenanceRole::Standby
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(1_000 + seconds)
    }

    #[test]
    fn a_replica_becomes_the_deputy_after_two_to_four_intervals_without_a_leader() {
        for (draw, wait) in [(0.0, 20), (0.5, 30), (1.0, 40)] {
            let mut deputy = Deputy::new(INTERVAL, draw);
            assert_eq!(deputy.role(at(0), true, true), MaintenanceRole::Leader);
            assert_eq!(deputy.role(at(5), false, true), MaintenanceRole::Standby);
            assert_eq!(deputy.role(at(10), false, false), MaintenanceRole::Standby);
            let last = at(10 + wait - 1);
            assert_eq!(deputy.role(last, false, false), MaintenanceRole::Standby);
            assert_eq!(
                deputy.role(at(10 + wait), false, false),
                MaintenanceRole::Deputy
            );
            // With a leader the wait starts again.
            assert_eq!(deputy.role(at(60), false, true), MaintenanceRole::Standby);
            assert_eq!(deputy.role(at(61), false, false), MaintenanceRole::Standby);
        }
    }

    #[test]
    fn a_deputy_acts_on_a_full_etcd_only() {
        let roomy = EtcdMember::default();
        let full = EtcdMember {
            is_out_of_space: true,
            ..EtcdMember::default()
        };
        let (calm, alarmed) = ([roomy.clone()], [roomy, full]);
        for (role, when_calm, when_full) in [
            (MaintenanceRole::Leader, true, true),
            (MaintenanceRole::Deputy, false, true),
            (MaintenanceRole::Standby, false, false),
        ] {
            assert_eq!(
                (role.acts(&calm), role.acts(&alarmed)),
                (when_calm, when_full)
            );
        }
    }
}
