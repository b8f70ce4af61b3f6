//! Names of jobs, groups and tasks: what they may not contain.

use std::collections::BTreeMap;

use super::check::{Check, Path};

/// Returns the job's id; it is part of keys and URLs, so spaces and NUL are refused.
pub(super) fn job_id(check: &mut Check, id: Option<&str>) -> String {
    let id = id.unwrap_or_default();
    if id.is_empty() {
        check.error(
            "id",
            "Missing job ID: write it as the label, as in job \"web\" { … }",
        );
    }
    if id.contains(' ') {
        check.error(
            "id",
            "Job ID contains a space: use a dash or an underscore instead",
        );
    }
    if id.contains('\0') {
        check.error("id", "Job ID contains a null character: remove it");
    }
    id.to_owned()
}

/// Returns the name of a group or task, which becomes a directory on the node.
///
/// `noun` is how messages call it: `Task group`, `Task`.
pub(super) fn directory(check: &mut Check, path: &Path, noun: &str, name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    let field = path.field("name");
    if name.is_empty() {
        let block = if noun == "Task" { "task" } else { "group" };
        let message = format!(
            "Missing {} name: write it as the label, as in {block} \"server\" {{ … }}",
            noun.to_lowercase(),
        );
        check.error(&field, message);
    }
    if name.contains(['/', '\\']) {
        check.error(
            &field,
            format!("{noun} name cannot include slashes: use dashes instead"),
        );
    }
    if name.contains('\0') {
        check.error(
            &field,
            format!("{noun} name cannot include null characters: remove them"),
        );
    }
    if name == "." || name == ".." {
        let message = format!("{noun} cannot be named {name:?}: it would be a directory of others");
        check.error(&field, message);
    }
    name.to_owned()
}

/// Reports each name that occurs more than once, at its later places.
pub(super) fn distinct<'a>(
    check: &mut Check,
    path: &Path,
    block: &str,
    names: impl Iterator<Item = &'a str>,
) {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for (position, name) in names.enumerate() {
        if name.is_empty() {
            continue;
        }
        if let Some(earlier) = first.get(name) {
            let field = path.labelled(block, Some(name), position);
            let message = format!(
                "{block} {name:?} is defined twice, as number {} and {}: rename one of them",
                earlier + 1,
                position + 1,
            );
            check.error(field, message);
        } else {
            first.insert(name, position);
        }
    }
}
