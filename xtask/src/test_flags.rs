//! The flags `test` and `doctest` of targets: cargo builds and runs a test program for each library and
//! binary, and one of examples for each library, even if there is nothing in it. A flag that is off
//! hides tests, so each says what its sources have.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::metadata::{self, Target};
use crate::orphans;

/// # Errors
/// Every library and binary whose manifest says otherwise than its sources.
pub(crate) fn check(metadata: &Value) -> Result<()> {
    let targets = metadata::programs(metadata)?;
    let roots: BTreeSet<&PathBuf> = targets.iter().map(|target| &target.root).collect();
    let mut wrong = Vec::new();
    for target in &targets {
        let mut sources = Vec::new();
        for file in files(target, &targets, &roots)? {
            sources.push(fs::read_to_string(&file).with_context(|| file.display().to_string())?);
        }
        let has_tests = sources.iter().any(|text| has_tests(text));
        let has_examples = target.is_library && sources.iter().any(|text| has_examples(text));
        let name = &target.name;
        if has_tests != target.test {
            wrong.push(format!("{name}: test should be {has_tests}"));
        }
        if target.is_library && has_examples != target.doctest {
            wrong.push(format!("{name}: doctest should be {has_examples}"));
        }
    }
    if !wrong.is_empty() {
        bail!(
            "flags in [lib] or [[bin]] of Cargo.toml that differ from what the sources have: {}",
            wrong.join(", ")
        );
    }
    Ok(())
}

/// Returns the sources of a target. A binary in the folder of a library has the files below its own name only.
fn files(target: &Target, targets: &[Target], roots: &BTreeSet<&PathBuf>) -> Result<Vec<PathBuf>> {
    let folder = target.root.parent().context("a target without a folder")?;
    let beside_library = folder.ends_with("bin")
        || targets
            .iter()
            .any(|other| other.is_library && other.root.parent() == Some(folder));
    let mut files = vec![target.root.clone()];
    if target.is_library || !beside_library {
        let others = orphans::rust_files(folder)?.into_iter();
        files.extend(others.filter(|file| !roots.contains(file)));
    } else if target.root.with_extension("").is_dir() {
        files.extend(orphans::rust_files(&target.root.with_extension(""))?);
    }
    Ok(files)
}

fn has_tests(text: &str) -> bool {
    let marks = ["#[test]", "#[tokio::test", "proptest! {"];
    text.lines()
        .any(|line| marks.iter().any(|mark| line.trim_start().starts_with(mark)))
}

/// Tells whether a comment of documentation opens a block of code that is no plain text.
fn has_examples(text: &str) -> bool {
    let mut open = false;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(doc) = line.strip_prefix("//!").or(line.strip_prefix("///")) else {
            open = false;
            continue;
        };
        let Some(language) = doc.trim_start().strip_prefix("```") else {
            continue;
        };
        if !open && language != "text" {
            return true;
        }
        open = !open;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_examples_are_found() {
        for (text, tests, examples) in [
            ("fn f() {}", false, false),
            ("    #[test]\n    fn f() {}", true, false),
            ("#[tokio::test(start_paused = true)]", true, false),
            ("proptest! {", true, false),
            ("let mark = \"#[test]\";", false, false),
            ("//! ```text\n//! a\n//! ```", false, false),
            ("/// ```\n/// f();\n/// ```", false, true),
            (
                "//! ```text\n//! a\n//! ```\n//!\n//! ```no_run",
                false,
                true,
            ),
        ] {
            assert_eq!(has_tests(text), tests, "{text}");
            assert_eq!(has_examples(text), examples, "{text}");
        }
    }

    #[test]
    fn a_flag_that_hides_tests_is_found_and_one_without_any_as_well() {
        let folder = std::env::temp_dir().join(format!("kafila-flags-{}", std::process::id()));
        fs::create_dir_all(folder.join("src/bin")).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("src/lib.rs", "mod a;");
        write("src/a.rs", "#[test]\nfn a() {}");
        write("src/bin/b.rs", "fn main() {}");
        let target = |kind: &str, name: &str, path: &str, test: bool| {
            serde_json::json!({
                "kind": [kind], "name": name, "src_path": folder.join(path), "test": test, "doctest": false,
            })
        };
        let checked = |library: bool, binary: bool| {
            let targets = [
                target("lib", "a", "src/lib.rs", library),
                target("bin", "b", "src/bin/b.rs", binary),
            ];
            let metadata =
                serde_json::json!({ "packages": [{ "source": null, "targets": targets }] });
            check(&metadata).map_err(|error| error.to_string())
        };
        let (right, wrong) = (checked(true, false), checked(false, true));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(right, Ok(()));
        let wrong = wrong.unwrap_err();
        assert!(
            wrong.ends_with("have: a: test should be true, b: test should be false"),
            "{wrong}"
        );
    }
}
