//! Figures of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::schedule::{Round, Victim};

/// Times from a kill until everything ran again, by victims.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub seed: u64,
    pub rounds: usize,
    /// Kills by victim; one whose process did not exist at that moment is none.
    pub kills: BTreeMap<Victim, usize>,
    recoveries: BTreeMap<Vec<Victim>, Vec<Duration>>,
    /// Tasks that were the same process after a round as before it, and those that were started again.
    pub kept: usize,
    pub restarted: usize,
    /// Starts of tasks.
    pub starts: usize,
    pub replaced_jobs: usize,
    /// Shims and empty control groups at the end.
    pub left_by_engine: (usize, usize),
}

impl Report {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    pub fn record(&mut self, round: &Round, recovery: Duration) {
        self.rounds += 1;
        let mut victims = round.victims.clone();
        victims.sort();
        self.recoveries.entry(victims).or_default().push(recovery);
    }

    pub fn count_kill(&mut self, victim: Victim) {
        *self.kills.entry(victim).or_default() += 1;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} rounds, {} starts of tasks, {} jobs stopped and registered again",
            self.seed, self.rounds, self.starts, self.replaced_jobs
        )?;
        let kills = self.kills.iter();
        let kills: Vec<String> = kills
            .map(|(it, count)| format!("{} {count}", it.name()))
            .collect();
        writeln!(f, "kills: {}", kills.join(", "))?;
        writeln!(
            f,
            "steady tasks over the rounds: {} the same process, {} started again",
            self.kept, self.restarted
        )?;
        let (shims, groups) = self.left_by_engine;
        writeln!(
            f,
            "left behind by the engine itself: {shims} shims, {groups} empty control groups"
        )?;
        writeln!(
            f,
            "| killed | rounds | until all ran again: median | longest |"
        )?;
        writeln!(f, "| --- | ---: | ---: | ---: |")?;
        for (victims, times) in &self.recoveries {
            let mut times = times.clone();
            times.sort();
            let names: Vec<&str> = victims.iter().map(|it| it.name()).collect();
            let median = times.get(times.len() / 2).copied().unwrap_or_default();
            let longest = times.last().copied().unwrap_or_default();
            writeln!(
                f,
                "| {} | {} | {:.1} s | {:.1} s |",
                names.join(" and "),
                times.len(),
                median.as_secs_f64(),
                longest.as_secs_f64()
            )?;
        }
        Ok(())
    }
}
