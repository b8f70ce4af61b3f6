//! Admission by the space that is left in etcd: new work is refused before the quota is reached.
//!
//! At its quota etcd refuses every write that is not a deletion, also those that end work. So new
//! work is refused earlier, and the rest of the quota is for stops, reports and garbage collection.

use model::etcd::{Bytes, EtcdMember, percent};
use model::refusal::{Kind, Refusal};

/// New work is accepted again once this many percentage points of the quota are free below the limit:
/// a limit that is crossed in both directions every few seconds would be of no use to callers.
const HYSTERESIS_PERCENT: u64 = 5;
/// The size of the database at which new work is refused, even when much of it is free pages: at the
/// quota etcd does not count them.
const MAX_SIZE_PERCENT: u64 = 95;

/// Thresholds of a [`SpaceGate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceLimits {
    /// Data in use, as a percentage of the quota, at which new work is refused; 100: never.
    pub refuse_percent: u64,
    /// The quota of members that do not report it.
    pub quota_bytes: u64,
}

/// The refusal of new work for lack of space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSpace {
    #[error(
        "etcd is nearly full: {endpoint} holds {in_use} of data in a database of {db}, its quota is \
         {quota}. New work is refused until there is space; stops and garbage collection work. Stop \
         jobs that are no longer needed, run `kafila system gc`, or raise --quota-backend-bytes of \
         every member. `kafila operator etcd status` shows \
         the members"
    )]
    Near {
        endpoint: String,
        in_use: Bytes,
        db: Bytes,
        quota: Bytes,
    },
    #[error(
        "etcd is full: {endpoint} has raised the alarm NOSPACE, and etcd refuses writes. The \
         cluster-controller compacts and defragments etcd, then disarms the alarm; if that does not \
         help, run `kafila operator etcd compact`, `kafila operator etcd defrag` and `kafila operator etcd \
         status`, or raise --quota-backend-bytes of every member"
    )]
    Full { endpoint: String },
}

impl Refusal for NoSpace {
    fn kind(&self) -> Kind {
        Kind::Overloaded
    }
}

/// Decides whether new work is accepted, by the last known status of etcd's members.
#[derive(Clone, Debug)]
pub struct SpaceGate {
    limits: SpaceLimits,
    refusal: Option<NoSpace>,
}

impl SpaceGate {
    /// Open until [`Self::observe`] is called.
    pub fn new(limits: SpaceLimits) -> Self {
        Self {
            limits,
            refusal: None,
        }
    }

    /// Decides by the members that answered. Without any answer the decision stays.
    pub fn observe(&mut self, members: &[EtcdMember]) {
        if members.is_empty() || self.limits.refuse_percent >= 100 {
            return;
        }
        let margin = if self.refusal.is_some() {
            HYSTERESIS_PERCENT
        } else {
            0
        };
        self.refusal = members
            .iter()
            .find_map(|member| self.refusal_by(member, margin));
    }

    fn refusal_by(&self, member: &EtcdMember, margin: u64) -> Option<NoSpace> {
        let endpoint = || member.endpoint.clone();
        if member.is_out_of_space {
            return Some(NoSpace::Full {
                endpoint: endpoint(),
            });
        }
        let quota = member.quota_bytes(self.limits.quota_bytes)?;
        let in_use = percent(member.in_use_bytes, quota);
        let size = percent(member.db_bytes, quota);
        let max_in_use = self.limits.refuse_percent.saturating_sub(margin);
        let max_size = MAX_SIZE_PERCENT.max(self.limits.refuse_percent) - margin;
        (in_use >= max_in_use || size >= max_size).then(|| NoSpace::Near {
            endpoint: endpoint(),
            in_use: Bytes(member.in_use_bytes),
            db: Bytes(member.db_bytes),
            quota: Bytes(quota),
        })
    }

    /// Accepts or refuses new work.
    ///
    /// # Errors
    /// [`NoSpace`].
    pub fn check(&self) -> Result<(), NoSpace> {
        self.refusal.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use model::etcd::Quota;
    use proptest::prelude::*;

    use super::*;

    const LIMITS: SpaceLimits = SpaceLimits {
        refuse_percent: 85,
        quota_bytes: 1_000,
    };

    fn member(db_bytes: u64, in_use_bytes: u64) -> EtcdMember {
        EtcdMember {
            endpoint: "http://10.0.0.1:2379".to_owned(),
            db_bytes,
            in_use_bytes,
            ..EtcdMember::default()
        }
    }

    fn is_open(gate: &mut SpaceGate, members: &[EtcdMember]) -> bool {
        gate.observe(members);
        gate.check().is_ok()
    }

    #[test]
    fn data_in_use_closes_the_gate_and_opens_it_five_points_lower() {
        let mut gate = SpaceGate::new(LIMITS);
        for (in_use, open) in [
            (0, true),
            (849, true),
            (850, false),
            (800, false),
            (799, true),
        ] {
            assert_eq!(is_open(&mut gate, &[member(860, in_use)]), open, "{in_use}");
        }
    }

    #[test]
    fn free_pages_count_only_close_to_the_quota() {
        let mut gate = SpaceGate::new(LIMITS);
        assert!(is_open(&mut gate, &[member(949, 10)]));
        assert!(!is_open(&mut gate, &[member(950, 10)]));
        assert!(!is_open(&mut gate, &[member(900, 10)]));
        assert!(is_open(&mut gate, &[member(899, 10)]));
    }

    #[test]
    fn the_fullest_member_decides_and_silence_changes_nothing() {
        let mut gate = SpaceGate::new(LIMITS);
        assert!(!is_open(&mut gate, &[member(10, 10), member(900, 900)]));
        let refusal = gate.check().unwrap_err();
        assert_eq!(refusal.kind(), Kind::Overloaded);
        for text in ["10.0.0.1:2379", "kafila system gc", "--quota-backend-bytes"] {
            assert!(refusal.to_string().contains(text), "{refusal}");
        }
        assert!(!is_open(&mut gate, &[]), "no member has answered");
        assert!(is_open(&mut gate, &[member(10, 10), member(90, 90)]));
    }

    #[test]
    fn an_alarm_closes_the_gate_whatever_the_sizes() {
        let mut gate = SpaceGate::new(LIMITS);
        let alarmed = EtcdMember {
            is_out_of_space: true,
            ..member(10, 10)
        };
        assert!(!is_open(&mut gate, std::slice::from_ref(&alarmed)));
        assert!(matches!(gate.check(), Err(NoSpace::Full { .. })));
        assert!(is_open(&mut gate, &[member(10, 10)]));
    }

    #[test]
    fn a_member_without_a_quota_and_a_limit_of_100_never_refuse() {
        let unlimited = EtcdMember {
            quota: Quota::Unlimited,
            ..member(5_000, 5_000)
        };
        assert!(is_open(&mut SpaceGate::new(LIMITS), &[unlimited]));
        let mut off = SpaceGate::new(SpaceLimits {
            refuse_percent: 100,
            ..LIMITS
        });
        assert!(is_open(&mut off, &[member(999, 999)]));
    }

    proptest! {
        /// Whatever came before, an emptied database opens the gate, and a full one closes it.
        #[test]
        fn the_gate_recovers_by_itself(sizes in prop::collection::vec((0_u64..2_000, 0_u64..2_000, any::<bool>()), 0..20)) {
            let mut gate = SpaceGate::new(LIMITS);
            for (db, in_use, alarm) in sizes {
                gate.observe(&[EtcdMember { is_out_of_space: alarm, ..member(db.max(in_use), in_use) }]);
                prop_assert!(in_use < 850 || gate.check().is_err());
            }
            gate.observe(&[member(700, 100)]);
            prop_assert!(gate.check().is_ok());
        }
    }
}
