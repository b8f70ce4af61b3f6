//! Malformed job files and their errors: `tests/malformed/<case>.hcl` and `.txt`.
//!
//! A case is added without Rust: write the .hcl file, run this test with UPDATE_EXPECT=1, and read
//! the .txt file that it writes: is the place right, and would you know what to do?

use std::fmt::Write;
use std::path::{Path, PathBuf};

use jobspec::{Inputs, canonicalise, parse};

use crate::support::NOW;

fn report(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy();
    let text = std::fs::read_to_string(path).unwrap();
    let inputs = Inputs::default();
    match parse(&name, &text, &inputs) {
        Err(errors) => errors.to_string(),
        Ok(parsed) => match canonicalise(&parsed.job, NOW) {
            Err(errors) => parsed.places.locate(&errors).to_string(),
            Ok(_) => "this file is fine".to_owned(),
        },
    }
}

#[test]
fn every_malformed_file_is_answered_with_its_place_and_the_fix() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/malformed");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "hcl"));
    cases.sort();
    assert!(cases.len() >= 30, "{} cases", cases.len());
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut differences = String::new();
    for case in cases {
        let got = report(&case) + "\n";
        let expected_file = case.with_extension("txt");
        if update {
            std::fs::write(&expected_file, &got).unwrap();
        }
        let expected = std::fs::read_to_string(&expected_file).unwrap_or_default();
        let name = case.file_name().unwrap().to_string_lossy();
        assert!(got.contains(&format!("--> {name}:")), "no place in\n{got}");
        if got != expected {
            writeln!(differences, "{name}: expected\n{expected}got\n{got}").unwrap();
        }
    }
    assert!(
        differences.is_empty(),
        "{differences}run with UPDATE_EXPECT=1 to accept"
    );
}
