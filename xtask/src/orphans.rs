//! Source files that no module declares: the compiler never reads them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// # Errors
/// Every file below the folder of a target's root that is neither a root nor declared.
pub(crate) fn check(root: &Path, targets: &[PathBuf]) -> Result<()> {
    let roots: BTreeSet<&PathBuf> = targets.iter().collect();
    let mut orphans = BTreeSet::new();
    for folder in targets.iter().filter_map(|target| target.parent()) {
        for file in rust_files(folder)? {
            if !roots.contains(&file) && !is_declared(&file)? {
                let shown = file.strip_prefix(root).unwrap_or(&file);
                orphans.insert(shown.display().to_string());
            }
        }
    }
    if !orphans.is_empty() {
        let list: Vec<String> = orphans.into_iter().collect();
        bail!("files that no module declares: {}", list.join(", "));
    }
    Ok(())
}

/// Returns the sources below a folder, those of packages below it left out.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                // A package of its own below another one's folder, or a build's output.
                if !path.join("Cargo.toml").exists() && !path.ends_with("target") {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Tells whether a file beside or above `file` declares it as a module.
fn is_declared(file: &Path) -> Result<bool> {
    let (Some(folder), Some(stem)) = (file.parent(), file.file_stem()) else {
        return Ok(false);
    };
    let stem = stem.to_string_lossy();
    let declaration = format!("mod {stem};");
    let by_path = format!("{stem}.rs\"");
    let mut parents = vec![folder.with_extension("rs")];
    let beside = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    parents.extend(beside.filter(|path| path != file && path.is_file()));
    for parent in parents {
        let Ok(text) = fs::read_to_string(&parent) else {
            continue;
        };
        if text.contains(&declaration) || text.contains(&by_path) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_declaration_is_found() {
        let folder = std::env::temp_dir().join(format!("kafila-orphans-{}", std::process::id()));
        fs::create_dir_all(folder.join("a")).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("lib.rs", "mod a;");
        write("a.rs", "mod part;");
        write("a/part.rs", "");
        let targets = [folder.join("lib.rs")];
        check(&folder, &targets).unwrap();
        write("a/forgotten.rs", "");
        let error = check(&folder, &targets).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(error, "files that no module declares: a/forgotten.rs");
    }
}
