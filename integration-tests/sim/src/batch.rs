//! Batch of seeds: each in a process of its own, because a simulation replaces the clocks and random
//! numbers of its process.

use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use simulation::totals::Totals;

use crate::arguments::{Options, TOTALS};

pub(crate) struct Batch {
    pub(crate) from: u64,
    pub(crate) seeds: Option<u64>,
    pub(crate) seconds: Option<u64>,
    pub(crate) jobs: Option<usize>,
    pub(crate) failures: usize,
    pub(crate) twice: bool,
    pub(crate) options: Options,
}

#[derive(Default)]
struct Tally {
    played: u64,
    failed: Vec<u64>,
    totals: Totals,
}

impl Batch {
    #[expect(
        clippy::disallowed_methods,
        reason = "real time, outside of any simulation"
    )]
    pub(crate) fn play(&self) -> ExitCode {
        let began = Instant::now();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.unwrap_or(cores).max(1);
        let next = AtomicU64::new(self.from);
        let end = self.seeds.map_or(u64::MAX, |seeds| self.from + seeds);
        let limit = self.seconds.map(Duration::from_secs);
        let tally = Mutex::new(Tally::default());
        let lock = || {
            tally
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        };
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    loop {
                        let is_late = limit.is_some_and(|limit| began.elapsed() > limit);
                        if is_late || lock().failed.len() >= self.failures {
                            break;
                        }
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= end {
                            break;
                        }
                        let result = self.one(seed);
                        let mut tally = lock();
                        tally.played += 1;
                        match result {
                            Ok(totals) => tally.totals.add(totals),
                            Err(text) => {
                                tally.failed.push(seed);
                                println!("{text}\n    replay: {}", self.again(seed));
                            }
                        }
                    }
                });
            }
        });
        let tally = lock();
        print!("{}", tally.totals);
        println!(
            "{} seeds from {} on in {} s, {} failed: {:?}",
            tally.played,
            self.from,
            began.elapsed().as_secs(),
            tally.failed.len(),
            tally.failed
        );
        match tally.failed.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }

    /// Plays one seed. Returns its totals, or its output if it failed.
    fn one(&self, seed: u64) -> Result<Totals, String> {
        let output = self
            .start(seed)
            .map_err(|error| format!("cannot play seed {seed}: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (printed, totals) = text.split_once(TOTALS).unwrap_or((text.as_str(), ""));
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{printed}{errors}{}", output.status));
        }
        if self.twice {
            let again = self
                .start(seed)
                .map_err(|error| format!("cannot play seed {seed} again: {error}"))?;
            if again.stdout != output.stdout {
                let again = String::from_utf8_lossy(&again.stdout).into_owned();
                return Err(format!("seed {seed} does not repeat:\n{text}{again}"));
            }
        }
        serde_json::from_str(totals).map_err(|error| format!("totals of seed {seed}: {error}"))
    }

    fn start(&self, seed: u64) -> std::io::Result<Output> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(self.words(seed)).arg("--totals").output()
    }

    fn words(&self, seed: u64) -> Vec<String> {
        let mut words = vec!["one".to_owned(), "--seed".to_owned(), seed.to_string()];
        words.extend(["--length".to_owned(), self.options.length.to_string()]);
        if self.options.calm {
            words.push("--calm".to_owned());
        }
        if let Some(name) = self.options.script.and_then(|it| it.to_possible_value()) {
            words.extend(["--script".to_owned(), name.get_name().to_owned()]);
        }
        words
    }

    fn again(&self, seed: u64) -> String {
        format!("simulation {} --verbose", self.words(seed).join(" "))
    }
}
