//! Texts for arguments and environment variables of a process, which cannot hold a null character.

use std::collections::BTreeMap;

use super::validation::{Path, Validation};

/// Returns why a process cannot be given `text`; `None`: it can.
pub(super) fn unfit(text: &str) -> Option<String> {
    let position = text.chars().position(|character| character == '\0')?;
    Some(format!(
        "cannot include null characters, and has one after {position} others: remove it"
    ))
}

/// Returns the entries of `env` or `meta`, each of which becomes a variable.
pub(super) fn variables(
    check: &mut Validation,
    path: &Path,
    name: &str,
    entries: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    for (key, value) in entries {
        let wrong = match (unfit(key), unfit(value)) {
            (Some(why), _) => format!("the name {key:?} {why}"),
            (None, Some(why)) => format!("the value of {key:?} {why}"),
            (None, None) => continue,
        };
        check.error(path.field(name), wrong);
    }
    entries.clone()
}
