//! Paths in documents: every path in docs/ARCHITECTURE.md exists, every crate is in its code map, and the
//! source files that records of decisions name exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const FILE: &str = "docs/ARCHITECTURE.md";
const DECISIONS: &str = "docs/decisions";

/// `packages` are the folders of the workspace's packages, below `root`.
///
/// # Errors
/// A path that does not exist, with its line; a package that the page does not mention.
pub(crate) fn check(root: &Path, packages: &[PathBuf]) -> Result<()> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    let problems = problems(root, &text, packages)?;
    if !problems.is_empty() {
        bail!("{FILE}: {}", problems.join("; "));
    }
    Ok(())
}

/// Checks the records of decisions.
///
/// # Errors
/// Source files that do not exist, with their lines.
pub(crate) fn check_decisions(root: &Path) -> Result<()> {
    let mut problems = Vec::new();
    for name in names_in(&root.join(DECISIONS))? {
        let file = format!("{DECISIONS}/{name}");
        let text = fs::read_to_string(root.join(&file)).with_context(|| file.clone())?;
        let missing = missing_files(root, &text)?;
        problems.extend(missing.iter().map(|problem| format!("{file}: {problem}")));
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("; "));
    }
    Ok(())
}

/// Returns the paths of source files in `text` that do not exist below `root`. A file name without a
/// folder is not checked.
fn missing_files(root: &Path, text: &str) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_file = quoted.contains('/') && quoted.ends_with(".rs") && !quoted.contains(' ');
            if is_file && matches(root, quoted)?.is_empty() {
                problems.push(format!("line {number}: {quoted} does not exist"));
            }
        }
    }
    Ok(problems)
}

fn problems(root: &Path, text: &str, packages: &[PathBuf]) -> Result<Vec<String>> {
    let top = names_in(root)?;
    let mut problems = Vec::new();
    let mut named = BTreeSet::new();
    let mut rows = BTreeSet::new();
    for (number, line) in (1..).zip(text.lines()) {
        let crate_row = line
            .strip_prefix("| `crates/")
            .and_then(|row| row.split('`').next());
        if crate_row.is_some_and(|name| !name.contains('/') && !rows.insert(name)) {
            problems.push(format!("line {number}: the crate has a row already"));
        }
        // Folders in which a bare file name of this line may be.
        let mut folders = Vec::new();
        for quoted in line.split('`').skip(1).step_by(2) {
            named.insert(quoted.trim_end_matches('/').to_owned());
            let first = quoted.split('/').next().unwrap_or_default();
            let is_path =
                quoted.contains('/') && top.contains(first) && !quoted.contains([' ', '*']);
            let is_file = !quoted.contains(['/', ' ']) && quoted.ends_with(".rs");
            if is_path {
                let found = matches(root, quoted)?;
                if found.is_empty() {
                    problems.push(format!("line {number}: {quoted} does not exist"));
                }
                for path in found {
                    folders.extend(path.parent().map(Path::to_owned));
                    folders.push(path.with_extension(""));
                    folders.push(path);
                }
            } else if is_file && !folders.iter().any(|folder| folder.join(quoted).is_file()) {
                problems.push(format!(
                    "line {number}: {quoted} is beside no path before it"
                ));
            }
        }
    }
    for package in packages {
        let path = package.to_string_lossy();
        let name = path.rsplit('/').next().unwrap_or(&path);
        let parent = path.split('/').next().unwrap_or(&path);
        // Services are listed by name; the parts of `integration-tests` by their folder.
        let is_service = parent == "services" && named.contains(name);
        let is_part = parent == "integration-tests" && named.contains(parent);
        if !named.contains(path.as_ref()) && !is_service && !is_part {
            problems.push(format!("{path} is missing"));
        }
    }
    Ok(problems)
}

fn names_in(folder: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let name = |entry: std::io::Result<fs::DirEntry>| {
        Ok(entry?.file_name().to_string_lossy().into_owned())
    };
    entries.map(name).collect()
}

/// Returns the existing paths of `quoted`. `<noun>` in it stands for any text without a slash.
fn matches(root: &Path, quoted: &str) -> Result<Vec<PathBuf>> {
    let mut found = vec![root.to_owned()];
    for part in quoted.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for folder in found {
            match part.split_once('<').zip(part.split_once('>')) {
                None => next.extend(Some(folder.join(part)).filter(|path| path.exists())),
                Some(((start, _), (_, end))) if folder.is_dir() => {
                    let names = names_in(&folder)?.into_iter();
                    let fitting =
                        names.filter(|name| name.starts_with(start) && name.ends_with(end));
                    next.extend(fitting.map(|name| folder.join(name)));
                }
                Some(_) => {}
            }
        }
        found = next;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        folder.to_owned()
    }

    fn found(text: &str, packages: &[&str]) -> Vec<String> {
        let packages: Vec<PathBuf> = packages.iter().map(PathBuf::from).collect();
        problems(&root(), text, &packages).unwrap()
    }

    #[test]
    fn paths_that_do_not_exist_are_found_with_their_line() {
        let text = "`xtask/src/layers.rs`, `main.rs` beside it, `fn main`\n\
                    | `xtask/src/none.rs`, `xtask/src/layers.rs`, `gone.rs` |";
        assert_eq!(
            found(text, &[]),
            [
                "line 2: xtask/src/none.rs does not exist",
                "line 2: gone.rs is beside no path before it"
            ]
        );
    }

    #[test]
    fn files_that_a_record_of_a_decision_names_exist() {
        let text =
            "`xtask/src/layers.rs`, `gone.rs`, `model::Job`\n`layers.rs/x`, `xtask/src/none.rs`";
        assert_eq!(
            missing_files(&root(), text).unwrap(),
            ["line 2: xtask/src/none.rs does not exist"]
        );
    }

    #[test]
    fn a_placeholder_stands_for_any_name() {
        assert_eq!(found("`services/<name>/src/config.rs`", &[]), [""; 0]);
        assert_eq!(
            found("`services/<name>/src/none.rs`", &[]),
            ["line 1: services/<name>/src/none.rs does not exist"]
        );
    }

    #[test]
    fn a_crate_has_one_row() {
        let text =
            "| `crates/model` | nouns |\n| `crates/state` | tables |\n| `crates/model` | more |";
        assert_eq!(found(text, &[]), ["line 3: the crate has a row already"]);
    }

    #[test]
    fn crates_that_are_not_mentioned_are_found() {
        let packages = [
            "crates/model",
            "crates/state",
            "services/plan-applier",
            "xtask",
        ];
        let text = "`crates/model`, `services/<name>`: `plan-applier`; `xtask/`";
        assert_eq!(found(text, &packages), ["crates/state is missing"]);
    }
}
