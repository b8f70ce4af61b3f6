//! Requests for dynamic metadata of a node: names and sizes. The node applies them.

use std::collections::BTreeMap;

use model::FieldErrors;

/// Source: as names of nodes.
const NAME_BYTES_MAX: usize = 128;
const VALUE_BYTES_MAX: usize = 4096;

/// Checks a request.
///
/// # Errors
/// All invalid fields.
pub fn check(set: &BTreeMap<String, String>, unset: &[String]) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    if set.is_empty() && unset.is_empty() {
        errors.push("set", "missing: name a value to set, or a name in `unset`");
    }
    for (name, value) in set {
        let field = format!("set[{name:?}]");
        if let Some(problem) = problem(name) {
            errors.push(field.as_str(), problem);
        } else if unset.contains(name) {
            errors.push(field.as_str(), "is in `unset` as well: want one of them");
        }
        if value.len() > VALUE_BYTES_MAX {
            let bytes = value.len();
            let problem = format!("has {bytes} bytes: want at most {VALUE_BYTES_MAX}");
            errors.push(field.as_str(), problem);
        }
    }
    for (position, name) in unset.iter().enumerate() {
        if let Some(problem) = problem(name) {
            errors.push(format!("unset[{position}]"), problem);
        }
    }
    errors.into_result(())
}

/// Source: Nomad's rule: identifiers of HCL, joined by dots.
fn problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("the name is empty: write one such as \"rack\"".to_owned());
    }
    if name.len() > NAME_BYTES_MAX {
        let bytes = name.len();
        return Some(format!(
            "the name has {bytes} bytes: want at most {NAME_BYTES_MAX}"
        ));
    }
    let is_identifier = |part: &str| {
        let mut letters = part.chars();
        let first = letters.next();
        first.is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'))
    };
    if name.split('.').all(is_identifier) {
        return None;
    }
    Some(format!(
        "the name {name:?} is invalid: want identifiers joined by dots, such as \"rack\" or \"rack.row\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(set: &[(&str, &str)], unset: &[&str]) -> Result<(), String> {
        let set = set
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let unset: Vec<String> = unset.iter().map(|name| (*name).to_owned()).collect();
        check(&set.collect(), &unset).map_err(|errors| errors.to_string())
    }

    #[test]
    fn names_are_dotted_identifiers() {
        for name in ["rack", "rack.row", "_a-b2", "ä"] {
            assert_eq!(ask(&[(name, "")], &[]), Ok(()), "{name}");
            assert_eq!(ask(&[], &[name]), Ok(()), "{name}");
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in ["", "a..b", ".a", "a.", "2a", "a b", "a/b", "-a", &long] {
            assert!(ask(&[(name, "x")], &[]).is_err(), "{name}");
            assert!(ask(&[], &[name]).is_err(), "{name}");
        }
    }

    #[test]
    fn a_refusal_names_the_field() {
        let large = "x".repeat(VALUE_BYTES_MAX + 1);
        for (set, unset, why) in [
            (&[][..], &[][..], "set: missing"),
            (&[("rack", "r1")], &["rack"], "set[\"rack\"]: is in `unset`"),
            (&[("rack", &*large)], &[], "want at most 4096"),
            (&[], &["a", "b b"], "unset[1]: the name \"b b\""),
        ] {
            let refused = ask(set, unset).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
