//! Functions of the language.

mod call;
mod collection;
mod encoding;
mod filesystem;
mod format;
mod function;
mod hash;
mod identifier;
mod network;
mod number;
pub(crate) mod sets;
mod text;
mod time;
mod unavailable;
mod yaml;

use suggest::hint;

use self::function::Function;

/// Functions that evaluate their arguments themselves.
const SPECIAL: [(&str, &str); 3] = [
    ("can", "expression"),
    ("try", "expression…"),
    ("convert", "value, type"),
];

fn all() -> impl Iterator<Item = &'static Function> {
    [
        number::FUNCTIONS,
        text::FUNCTIONS,
        format::FUNCTIONS,
        collection::FUNCTIONS,
        sets::FUNCTIONS,
        encoding::FUNCTIONS,
        yaml::FUNCTIONS,
        hash::FUNCTIONS,
        time::FUNCTIONS,
        network::FUNCTIONS,
        identifier::FUNCTIONS,
        filesystem::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the names of all functions.
pub fn names() -> impl Iterator<Item = &'static str> {
    all()
        .map(|function| function.name)
        .chain(SPECIAL.map(|(name, _)| name))
}

/// Returns the error of calling `name`, if it is no function.
pub(crate) fn problem(name: &str) -> Option<(&'static str, String)> {
    if names().any(|known| known == name) {
        return None;
    }
    if let Some(instead) = unavailable::instead(name) {
        let detail = format!("The function {name} is not available: {instead}");
        return Some(("Function not available", detail));
    }
    let detail = format!(
        "There is no function named {name:?}.{} The functions are listed in docs/job-files.md",
        hint(name, names()),
    );
    Some(("Call to unknown function", detail))
}

/// Returns a function that gets its arguments evaluated.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    all().find(|function| function.name == name)
}

/// Returns the parameters of a function that evaluates its arguments itself, for messages.
pub(super) fn special_parameters(name: &str) -> &'static str {
    let special = SPECIAL.iter().find(|(known, _)| *known == name);
    special.map_or("", |(_, parameters)| parameters)
}

#[cfg(test)]
mod tests;
