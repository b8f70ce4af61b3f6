//! Seeds are played: those that once found something, and as many others as there is time for.

use std::io::Write as _;
use std::process::{Command, Output};
use std::sync::Mutex;

/// How long seeds are played for, in seconds, unless `KAFILA_SIMULATION_SECONDS` says otherwise: a
/// machine that is busy plays fewer of them, and says how many.
const SECONDS: &str = "240";

/// So many are played, from 0 on, if there is time.
const SEEDS: &str = "250";

/// Seeds that have found something, with their lengths: they hold since it was mended.
const KEPT: &[(u64, &str)] = &[
    // A canceled evaluation said what was queued.
    (0, "20000"),
    // A report that arrived late undid the end of what it was about.
    (17, "20000"),
    // A service ran less than it asks for, as it may when its rollout has failed.
    (65, "20000"),
    // Old ones that waited for their update counted as too many.
    (14, "20000"),
    // A canary made way together with all old ones, and was never placed again.
    (54, "20000"),
];

/// One test at a time has the cores.
static CORES: Mutex<()> = Mutex::new(());

fn simulation(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulation"));
    command.args(words).env_remove("KAFILA_LOG");
    command.output().expect("the simulation starts")
}

fn holds(words: &[&str]) -> String {
    let output = simulation(words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}:\n{text}{errors}");
    text
}

#[test]
fn a_seed_repeats_to_the_last_byte_and_millisecond() {
    let _cores = CORES
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let words = ["one", "--seed", "7", "--length", "8000", "--verbose"];
    let (first, second) = (holds(&words), holds(&words));
    let differing = first
        .lines()
        .zip(second.lines())
        .find(|(one, two)| one != two);
    assert_eq!(differing, None);
    assert_eq!(first.len(), second.len());
    let words = ["one", "--seed", "8", "--length", "8000", "--verbose"];
    assert_ne!(first, holds(&words), "the seed decides");
}

#[test]
fn seeds_that_once_found_something_hold() {
    let _cores = CORES
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for (seed, length) in KEPT {
        holds(&["one", "--seed", &seed.to_string(), "--length", length]);
    }
}

#[test]
fn seeds_hold() {
    let _cores = CORES
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let seconds = std::env::var("KAFILA_SIMULATION_SECONDS").unwrap_or(SECONDS.to_owned());
    let text = holds(&["run", "--seconds", &seconds, "--seeds", SEEDS]);
    // Not `println!`, which nobody sees of a test that passes.
    let last = text.lines().last().unwrap_or_default();
    writeln!(std::io::stderr(), "simulation: {last}").expect("there is a terminal or a file");
}
