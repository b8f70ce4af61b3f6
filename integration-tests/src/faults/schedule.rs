//! Schedule of faults: kinds and times, drawn from a seed.
//!
//! The victim is chosen at the time of the fault, with a random number of the schedule, because the
//! leaders are not known before.

use std::fmt;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A service's process is killed, and started again soon.
    Kill,
    /// A service's process is paused with SIGSTOP and resumed later.
    Pause,
    /// Two groups of hosts are cut off from each other.
    Partition,
    /// One of etcd's members is killed, and comes back with its data.
    MemberLost,
    /// One of etcd's members is paused with SIGSTOP and resumed later.
    MemberPaused,
    /// Two of etcd's three members are killed, and come back with their data.
    MajorityLost,
    /// The disk of one of etcd's members is full.
    DiskFull,
    /// etcd is full: its alarm NOSPACE is raised, and raised again whenever it is disarmed.
    StoreFull,
    /// Packets take 200 ms.
    Delay,
}

impl Kind {
    pub const ALL: [Self; 9] = [
        Self::Kill,
        Self::Pause,
        Self::Partition,
        Self::MemberLost,
        Self::MemberPaused,
        Self::MajorityLost,
        Self::DiskFull,
        Self::StoreFull,
        Self::Delay,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Partition => "partition",
            Self::MemberLost => "member-lost",
            Self::MemberPaused => "member-paused",
            Self::MajorityLost => "majority-lost",
            Self::DiskFull => "disk-full",
            Self::StoreFull => "store-full",
            Self::Delay => "delay",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns whether the store cannot be written during the fault.
    pub fn stops_the_store(self) -> bool {
        matches!(self, Self::MajorityLost | Self::StoreFull)
    }

    /// Number of occurrences per round: two for the kinds with most victims or variants.
    fn weight(self) -> usize {
        match self {
            Self::Kill | Self::Partition => 2,
            _ => 1,
        }
    }

    /// Returns the shortest and longest duration in milliseconds: long enough to trigger the timeouts
    /// (leases 3 s, keep-alives 6 s, requests 5 s).
    fn lasts_ms(self, pause: Duration) -> (u64, u64) {
        let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        match self {
            Self::Kill => (500, 5_000),
            Self::Pause | Self::MemberPaused => (pause, pause),
            Self::Partition => (8_000, 16_000),
            Self::MemberLost | Self::MajorityLost | Self::DiskFull => (8_000, 12_000),
            Self::Delay | Self::StoreFull => (12_000, 16_000),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One scheduled fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Time since the start of the run.
    pub at: Duration,
    pub kind: Kind,
    pub lasts: Duration,
    /// Random number that chooses the victim.
    pub draw: u64,
}

/// Options of a schedule.
#[derive(Clone, Debug)]
pub struct ScheduleOptions {
    pub seed: u64,
    pub length: Duration,
    /// Duration of a pause.
    pub pause: Duration,
    /// Empty: all.
    pub kinds: Vec<Kind>,
}

/// Time before the first fault.
const WARM_UP: Duration = Duration::from_secs(8);
/// Time between the end of a fault and the next one, in milliseconds: longer than any recovery, so
/// that effects can be attributed to one fault.
const CALM_MS: (u64, u64) = (9_000, 12_000);

/// Returns the faults of a run, each reversed well before its end: rounds of every kind once or twice,
/// in random order.
pub fn schedule(options: &ScheduleOptions) -> Vec<Planned> {
    let mut rng = StdRng::seed_from_u64(options.seed);
    let kinds = if options.kinds.is_empty() {
        &Kind::ALL[..]
    } else {
        &options.kinds
    };
    let mut planned = Vec::new();
    let mut at = WARM_UP;
    loop {
        let weighted = kinds.iter().flat_map(|kind| vec![*kind; kind.weight()]);
        let mut round: Vec<Kind> = weighted.collect();
        round.shuffle(&mut rng);
        for kind in round {
            let (shortest, longest) = kind.lasts_ms(options.pause);
            let lasts = Duration::from_millis(rng.random_range(shortest..=longest));
            let calm = Duration::from_millis(rng.random_range(CALM_MS.0..=CALM_MS.1));
            let draw = rng.random();
            if at + lasts + calm > options.length {
                return planned;
            }
            planned.push(Planned {
                at,
                kind,
                lasts,
                draw,
            });
            at += lasts + calm;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(seed: u64) -> ScheduleOptions {
        ScheduleOptions {
            seed,
            length: Duration::from_secs(600),
            pause: Duration::from_secs(30),
            kinds: Vec::new(),
        }
    }

    #[test]
    fn ten_minutes_have_every_kind_at_least_twice_with_pauses_in_between() {
        for seed in 0..50 {
            let planned = schedule(&options(seed));
            for kind in Kind::ALL {
                let count = planned.iter().filter(|fault| fault.kind == kind).count();
                assert!(
                    count >= 2,
                    "seed {seed}: {kind} comes {count} times: {planned:?}"
                );
            }
            for pair in planned.windows(2) {
                let calm = pair[1].at - (pair[0].at + pair[0].lasts);
                assert!(calm >= Duration::from_millis(CALM_MS.0), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_seed_is_deterministic_and_only_the_chosen_kinds_occur() {
        assert_eq!(schedule(&options(7)), schedule(&options(7)));
        assert_ne!(schedule(&options(7)), schedule(&options(8)));
        let only = ScheduleOptions {
            kinds: vec![Kind::DiskFull],
            ..options(7)
        };
        let planned = schedule(&only);
        assert!(planned.len() > 10 && planned.iter().all(|fault| fault.kind == Kind::DiskFull));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(Kind::from_name("flood"), None);
    }
}
