//! The output of `cargo metadata` for this workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// # Errors
/// Cargo cannot run, or refuses, for instance because the lock file is stale.
pub(crate) fn read() -> Result<Value> {
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_slice(&output.stdout).context("cannot read what cargo metadata printed")
}

/// Returns the root file of every target of the workspace: libraries, binaries, tests, benchmarks,
/// examples and build scripts, in order and each once.
pub(crate) fn target_roots(metadata: &Value) -> Result<Vec<PathBuf>> {
    let mut roots = Vec::new();
    for package in array(metadata, "packages")? {
        // Only a workspace's own packages have no source.
        if !package["source"].is_null() {
            continue;
        }
        for target in array(package, "targets")? {
            let file = target["src_path"].as_str();
            roots.push(PathBuf::from(
                file.context("a target without a source file")?,
            ));
        }
    }
    roots.sort();
    roots.dedup();
    Ok(roots)
}

/// A library or a binary of the workspace.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) root: PathBuf,
    pub(crate) is_library: bool,
    /// Whether cargo builds its unit tests.
    pub(crate) test: bool,
    /// Whether cargo runs the examples in its documentation.
    pub(crate) doctest: bool,
}

pub(crate) fn programs(metadata: &Value) -> Result<Vec<Target>> {
    let mut programs = Vec::new();
    for package in array(metadata, "packages")? {
        if !package["source"].is_null() {
            continue;
        }
        for target in array(package, "targets")? {
            let is_a =
                |kind: &str| array(target, "kind").is_ok_and(|kinds| kinds.contains(&kind.into()));
            if is_a("lib") || is_a("bin") {
                let text = |key: &str| {
                    target[key]
                        .as_str()
                        .context("a target without a name or file")
                };
                programs.push(Target {
                    name: text("name")?.to_owned(),
                    root: PathBuf::from(text("src_path")?),
                    is_library: is_a("lib"),
                    test: target["test"] == true,
                    doctest: target["doctest"] == true,
                });
            }
        }
    }
    Ok(programs)
}

/// Returns the folder of every package of the workspace, in order.
pub(crate) fn package_folders(metadata: &Value) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for package in array(metadata, "packages")? {
        if !package["source"].is_null() {
            continue;
        }
        let manifest = package["manifest_path"].as_str();
        let manifest = PathBuf::from(manifest.context("a package without a manifest")?);
        folders.extend(manifest.parent().map(Path::to_owned));
    }
    folders.sort();
    Ok(folders)
}

pub(crate) fn array<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key]
        .as_array()
        .with_context(|| format!("cargo metadata printed no {key}"))
}
