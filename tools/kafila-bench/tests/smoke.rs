//! The command on a small suite of real processes.

use std::process::Command;

#[test]
fn a_small_fleet_runs_on_a_suite_and_is_reported() {
    if !test_kit::etcd::available() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kafila-bench"));
    command.args([
        "fleet",
        "-suite",
        "-nodes=50",
        "-jobs",
        "5",
        "-count=100",
        "-limit=1m",
    ]);
    command.arg("-out").arg(out.path());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    for expected in [
        "500 × allocation",
        "| **sum** |",
        "| plan-applier |",
        "| all allocations reported running |",
        "| in use, MiB |",
        "| nodes declared down | 0 |",
        "| violations | 0 |",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    for name in ["report.md", "cpu.svg", "memory.svg", "progress.svg"] {
        assert!(
            out.path().join(name).metadata().unwrap().len() > 100,
            "{name}"
        );
    }
}

#[test]
fn flags_that_exclude_each_other_and_wrong_values_are_refused() {
    for (line, expected) in [
        ("fleet -suite -address=http://a:1", "cannot be used with"),
        ("storm -share=1.5", "expected a number from 0 to 1"),
        ("idle -nodes=1 -address=https://127.0.0.1:1", "-nodes=0"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kafila-bench"));
        let output = command.args(line.split(' ')).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{line}");
        assert!(errors.contains(expected), "{line}: {errors}");
    }
}
