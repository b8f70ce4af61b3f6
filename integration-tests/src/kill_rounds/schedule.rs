//! Rounds, drawn from a seed.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// What a round kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Victim {
    /// The client-node.
    Agent,
    /// The supervisor of a task of raw_exec or exec.
    Supervisor,
    /// The process of a task itself.
    Task,
    /// The shim of a container.
    Shim,
    /// The Docker Engine.
    Engine,
    /// The engine's containerd, which the engine starts again.
    Containerd,
}

impl Victim {
    pub const ALL: [Self; 6] = [
        Self::Agent,
        Self::Supervisor,
        Self::Task,
        Self::Shim,
        Self::Engine,
        Self::Containerd,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Supervisor => "supervisor",
            Self::Task => "task",
            Self::Shim => "shim",
            Self::Engine => "engine",
            Self::Containerd => "containerd",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|victim| victim.name() == name)
    }
}

/// One round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// One, or two at the same time.
    pub victims: Vec<Victim>,
    /// Time before the kill.
    pub wait: Duration,
    /// Time for which the agent and the engine stay away.
    pub away: Duration,
    /// Stops a job just before the kill, and registers it again while the victim is away.
    pub replaces_job: bool,
    /// Chooses among several processes and jobs.
    pub number: usize,
}

/// Returns the rounds of a seed. Each kind of victim comes equally often.
/// `only`: these kinds alone; empty: all.
pub fn rounds(seed: u64, count: usize, only: &[Victim]) -> Vec<Round> {
    let mut rng = StdRng::seed_from_u64(seed);
    let kinds: &[Victim] = if only.is_empty() { &Victim::ALL } else { only };
    let mut rounds = Vec::new();
    let mut order: Vec<Victim> = Vec::new();
    while rounds.len() < count {
        if order.is_empty() {
            order = kinds.to_vec();
            order.shuffle(&mut rng);
        }
        let mut victims: Vec<Victim> = order.pop().into_iter().collect();
        // Every third round has two, as an agent that is down while a shim dies.
        let second = kinds[rng.random_range(0..kinds.len())];
        if rng.random_range(0..3) == 0 && !victims.contains(&second) {
            victims.push(second);
        }
        rounds.push(Round {
            victims,
            wait: Duration::from_millis(rng.random_range(0..1_200)),
            away: Duration::from_millis(rng.random_range(0..1_500)),
            replaces_job: rng.random_range(0..4) == 0,
            number: rng.random_range(0..1_000_000),
        });
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_each_kind_of_victim_comes_equally_often() {
        let all = rounds(7, 60, &[]);
        assert_eq!(all, rounds(7, 60, &[]));
        assert_ne!(all, rounds(8, 60, &[]));
        for victim in Victim::ALL {
            let first = all.iter().filter(|round| round.victims[0] == victim);
            assert_eq!(first.count(), 10, "{victim:?}");
            assert_eq!(Victim::from_name(victim.name()), Some(victim));
        }
        assert!(all.iter().any(|round| round.victims.len() == 2));
        assert!(all.iter().any(|round| round.replaces_job));
        let agents = rounds(7, 10, &[Victim::Agent]);
        assert!(agents.iter().all(|round| round.victims == [Victim::Agent]));
    }
}
