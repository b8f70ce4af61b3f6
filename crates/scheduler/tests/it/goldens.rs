//! Tables of scenarios in `tables/`; each scenario has a cluster of its own.
//!
//! `KAFILA_SCENARIO=037` plays only scenarios with that in their names.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::script::play;

/// The start of a line with the name of the scenario below it.
const HEADING: &str = "=== ";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tables")
}

/// Splits a table into scenarios, each with its name.
fn scenarios(table: &str) -> Vec<(&str, String)> {
    let mut scenarios = Vec::<(&str, String)>::new();
    for line in table.lines() {
        match (line.strip_prefix(HEADING), scenarios.last_mut()) {
            (Some(name), _) => scenarios.push((name, String::new())),
            (None, Some((_, script))) => writeln!(script, "{line}").unwrap(),
            (None, None) => panic!("{line:?} is before the first scenario"),
        }
    }
    scenarios
}

fn check(table: &str) {
    let path = folder().join(table).with_extension("txt");
    let written = fs::read_to_string(&path).unwrap();
    let wanted = std::env::var("KAFILA_SCENARIO").unwrap_or_default();
    let is_update = std::env::var_os("UPDATE_GOLDENS").is_some();
    let mut table = String::new();
    let mut differing = String::new();
    for (name, script) in scenarios(&written) {
        let mut played = script.clone();
        if name.contains(&wanted) {
            // A scenario that panics has printed its name.
            println!("playing {name}");
            played = play(&script);
        }
        if played != script {
            write!(differing, "{name} now plays as:\n{played}").unwrap();
        }
        write!(table, "{HEADING}{name}\n{played}").unwrap();
    }
    if is_update {
        fs::write(&path, &table).unwrap();
    } else {
        assert!(differing.is_empty(), "{differing}");
    }
}

macro_rules! tables {
    ($($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_table_is_a_test() {
            let tests = [$(stringify!($name)),*];
            for entry in fs::read_dir(folder()).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap();
                assert!(tests.contains(&name), "{name} is not listed in goldens.rs");
            }
        }
    };
}

tables! {
    evaluations,
    counts,
    lost,
    rescheduling,
    deployments,
    disconnect,
    system,
    ranking,
    explain,
    others,
    preemption,
    volumes,
    distinct,
    overtaken,
    failures,
    addresses,
}

#[test]
fn no_two_scenarios_share_a_name() {
    let mut names = std::collections::BTreeSet::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let table = fs::read_to_string(entry.unwrap().path()).unwrap();
        for (name, _) in scenarios(&table) {
            assert!(names.insert(name.to_owned()), "{name} is there twice");
        }
    }
}
