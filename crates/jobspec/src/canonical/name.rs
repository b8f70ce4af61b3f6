//! Names of jobs, groups and tasks: forbidden characters and lengths.

use std::collections::BTreeMap;

use super::validation::{Path, Validation};

/// The longest id of a job, in bytes: it is part of keys, URLs and lines of tables.
const MAX_JOB_ID_BYTES: usize = 256;

/// Returns the job's id; it is part of keys, URLs and command lines, so characters with another
/// meaning there are refused. A child's id is its parent's with the suffix of its launch, at any
/// length.
pub(super) fn job_id(check: &mut Validation, id: Option<&str>, parent_id: Option<&str>) -> String {
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
    } else if id.contains(char::is_control) {
        let message =
            format!("Job ID {id:?} contains a control character, such as a tab: remove it");
        check.error("id", message);
    }
    if matches!(id, "*" | "." | "..") {
        let message =
            format!("a job cannot have the ID {id:?}, which means something else: use a word");
        check.error("id", message);
    }
    if id.starts_with('-') {
        let message = format!(
            "Job ID {id:?} begins with a dash, as flags do: begin with a letter or a digit"
        );
        check.error("id", message);
    }
    let is_child = parent_id.is_some_and(|parent| !parent.is_empty());
    if id.len() > MAX_JOB_ID_BYTES && !is_child {
        let message = format!(
            "Job ID has {} bytes, more than {MAX_JOB_ID_BYTES}: shorten it",
            id.len()
        );
        check.error("id", message);
    }
    id.to_owned()
}

/// Returns the name of a group or task, which becomes a directory on the node.
///
/// `noun` is how messages call it: `Task group`, `Task`.
pub(super) fn directory(
    check: &mut Validation,
    path: &Path,
    noun: &str,
    name: Option<&str>,
) -> String {
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
    check: &mut Validation,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(id: &str, parent_id: Option<&str>) -> usize {
        let mut check = Validation::default();
        assert_eq!(job_id(&mut check, Some(id), parent_id), id);
        check.error_count()
    }

    #[test]
    fn an_id_is_a_word_that_means_nothing_else_and_no_longer_than_a_line() {
        let longest = "a".repeat(MAX_JOB_ID_BYTES);
        let longer = format!("{longest}/periodic-1795262400");
        for id in [
            "web",
            "web/api",
            "web/periodic-1",
            "a*",
            ".a",
            "a-",
            "ä",
            &longest,
        ] {
            assert_eq!(problems(id, None), 0, "{id}");
        }
        for id in ["*", ".", "..", "-", "-a", "a\tb", "a\u{7f}", "a\0", &longer] {
            assert_eq!(problems(id, None), 1, "{id}");
        }
        // Its launch made it so, and nodes check it again.
        assert_eq!(problems(&longer, Some(&longest)), 0);
    }
}
