//! A short fault test: processes killed, paused and cut off from each other on separate hosts. The
//! `faults` binary makes longer ones.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use integration_tests::faults::network;
use integration_tests::faults::report::Report;
use integration_tests::faults::schedule::{Kind, ScheduleOptions, schedule};

#[test]
fn kills_pauses_and_partitions_lose_nothing() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    if let Some(missing) = network::missing_requirement() {
        let required = std::env::var("KAFILA_REQUIRE_FAULTS").is_ok_and(|value| value == "1");
        ensure!(!required, "{missing}");
        eprintln!("SKIPPED: {missing}");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("report.json");
    let seed = match std::env::var("KAFILA_SEED") {
        Ok(seed) => seed,
        Err(_) => seed_with_every_kind().to_string(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_faults"));
    command
        .args([
            "--seed",
            &seed,
            "--minutes",
            "1.2",
            "--pause",
            "8",
            "--json",
        ])
        .arg(&json)
        .args(KINDS.iter().flat_map(|kind| ["--only", kind.name()]));
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "seed {seed}: {complaints}");

    let report = serde_json::from_slice(&std::fs::read(&json)?)?;
    let faults = Report::faults_of(&report);
    for kind in KINDS {
        ensure!(
            faults.iter().any(|fault| fault.kind == kind),
            "seed {seed}: no {kind} in {faults:?}"
        );
    }
    let number = |name: &str| report[name].as_u64().unwrap_or_default();
    ensure!(
        number("acknowledged") > 200 && number("placements") > 100,
        "seed {seed}: so little was done that little was tested: {report}"
    );
    Ok(())
}

const KINDS: [Kind; 3] = [Kind::Kill, Kind::Pause, Kind::Partition];

/// Draws until every kind of fault fits into the run.
fn seed_with_every_kind() -> u64 {
    loop {
        let seed = rand::random();
        let planned = schedule(&ScheduleOptions {
            seed,
            length: Duration::from_secs(72),
            pause: Duration::from_secs(8),
            kinds: KINDS.to_vec(),
        });
        let comes = |kind: &Kind| planned.iter().any(|fault| fault.kind == *kind);
        if KINDS.iter().all(comes) {
            return seed;
        }
    }
}
