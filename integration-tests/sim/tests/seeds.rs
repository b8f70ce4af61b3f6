//! Seeds with former findings, and as many others as the time allows.

/// In a module, so that `--skip seeds::` leaves them out of a run.
mod seeds {
    use std::io::Write as _;
    use std::process::{Command, Output};
    use std::sync::Mutex;

    /// Time limit in seconds, overridden by `KAFILA_SIMULATION_SECONDS`. A busy machine plays fewer seeds
    /// and prints how many.
    const SECONDS: &str = "240";

    /// Number of seeds from 0 on, if there is time.
    const SEEDS: &str = "250";

    /// Number of fresh seeds, and their time limit in seconds.
    const FRESH: (&str, &str) = ("10", "120");

    /// Seeds with former findings, fixed since, and their lengths.
    const KEPT: &[(u64, &str)] = &[
        // A canceled evaluation reported queued allocations.
        (0, "20000"),
        // A late report undid the end of its allocation.
        (17, "20000"),
        // A service ran fewer allocations than desired, which is legal after a failed rollout.
        (65, "20000"),
        // Outdated allocations that waited for their update counted as surplus.
        (14, "20000"),
        // A canary was preempted together with all outgoing allocations, and never placed again.
        (54, "20000"),
        // A repeated registration was answered with an older version that a purge had left.
        (4_203_681, "20000"),
        (4_201_659, "20000"),
        // A replacement of an older version named the create index of that version, not of its job.
        (4_202_979, "20000"),
        (4_204_440, "20000"),
    ];

    /// Lets one test at a time use the cores.
    static CORES: Mutex<()> = Mutex::new(());

    fn simulation(words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_simulation"));
        command.args(words).env_remove("KAFILA_LOG");
        command.output().expect("the simulation starts")
    }

    fn passes(words: &[&str]) -> String {
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
        let (first, second) = (passes(&words), passes(&words));
        let differing = first
            .lines()
            .zip(second.lines())
            .find(|(one, two)| one != two);
        assert_eq!(differing, None);
        assert_eq!(first.len(), second.len());
        let words = ["one", "--seed", "8", "--length", "8000", "--verbose"];
        assert_ne!(first, passes(&words), "the seed decides");
    }

    #[test]
    fn seeds_with_former_findings_pass() {
        let _cores = CORES
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for (seed, length) in KEPT {
            passes(&["one", "--seed", &seed.to_string(), "--length", length]);
        }
    }

    #[test]
    fn no_node_goes_down_while_one_gateway_or_the_leader_is_in_trouble() {
        let _cores = CORES
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for script in ["relay-cut", "answers-cut", "store-cut", "leader-stalls"] {
            for seed in ["1", "2"] {
                passes(&[
                    "one", "--seed", seed, "--length", "30000", "--script", script,
                ]);
            }
        }
    }

    #[test]
    fn seeds_pass() {
        let _cores = CORES
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let seconds = std::env::var("KAFILA_SIMULATION_SECONDS").unwrap_or(SECONDS.to_owned());
        let text = passes(&["run", "--seconds", &seconds, "--seeds", SEEDS]);
        // Not `println!`, whose output a passing test hides.
        let last = text.lines().last().unwrap_or_default();
        writeln!(std::io::stderr(), "simulation: {last}").expect("there is a terminal or a file");
    }

    /// Returns the first of the seeds that the commit decides; `None`: these sources are not in git.
    fn fresh_seed() -> Option<u64> {
        let mut git = Command::new("git");
        git.args(["rev-parse", "HEAD"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = git.output().ok().filter(|output| output.status.success())?;
        let commit = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = u64::from_str_radix(commit.get(..10)?, 16).ok()?;
        // Beyond the fixed seeds, and without overlaps between commits.
        Some(1_000_000 + number * 1_000)
    }

    #[test]
    fn fresh_seeds_pass() {
        let _cores = CORES
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut errors = std::io::stderr();
        let Some(from) = fresh_seed() else {
            writeln!(errors, "simulation: no commit, so no fresh seeds")
                .expect("there is a terminal");
            return;
        };
        let (from, (seeds, seconds)) = (from.to_string(), FRESH);
        let text = passes(&[
            "run",
            "--from",
            &from,
            "--seeds",
            seeds,
            "--seconds",
            seconds,
        ]);
        let last = text.lines().last().unwrap_or_default();
        writeln!(errors, "simulation: fresh {last}").expect("there is a terminal or a file");
    }
}
