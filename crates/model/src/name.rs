//! Names of objects that users choose: namespaces, node pools, volumes.

use crate::field_error::FieldErrors;

/// Longest description. Source: Nomad's public limits.
const MAX_DESCRIPTION_CHARS: usize = 256;

/// The rule for the names of one kind of object.
pub(crate) struct NameRule {
    /// As in `namespace`.
    pub(crate) noun: &'static str,
    /// A name for the message about a missing one.
    pub(crate) example: &'static str,
    /// The marks beside letters of a to z or A to Z and digits.
    pub(crate) marks: &'static str,
    /// The marks in words, as in `hyphens and underscores`.
    pub(crate) marks_in_words: &'static str,
    pub(crate) max_chars: usize,
}

impl NameRule {
    /// Returns whether every character may be in a name.
    pub(crate) fn has_valid_chars(&self, name: &str) -> bool {
        let fits = |c: char| c.is_ascii_alphanumeric() || self.marks.contains(c);
        name.chars().all(fits)
    }

    /// Returns the problem of an invalid name; `None`: the name is valid.
    pub(crate) fn problem(&self, name: &str) -> Option<String> {
        if name.is_empty() {
            return Some(format!("missing: want a name, as in {:?}", self.example));
        }
        let is_valid = name.chars().count() <= self.max_chars && self.has_valid_chars(name);
        (!is_valid).then(|| {
            let (noun, max_chars, marks) = (self.noun, self.max_chars, self.marks_in_words);
            format!(
                "{name:?} is not a {noun}'s name: want 1 to {max_chars} letters (a to z, A to Z), \
                 digits, {marks}"
            )
        })
    }

    /// Checks the fields `name` and `description` of an object.
    pub(crate) fn check_described(&self, name: &str, description: &str, errors: &mut FieldErrors) {
        if let Some(problem) = self.problem(name) {
            errors.push("name", problem);
        }
        let length = description.chars().count();
        if length > MAX_DESCRIPTION_CHARS {
            errors.push(
                "description",
                format!("has {length} characters: want at most {MAX_DESCRIPTION_CHARS}"),
            );
        }
    }
}

/// Returns the problem of a text that names the namespace of an object; `None`: it is one name, of
/// whatever length, and no pattern.
pub(crate) fn namespace_problem(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (name.is_empty() || !name.chars().all(fits)).then(|| {
        format!("{name:?} is not one namespace: want letters, digits, hyphens and underscores")
    })
}
