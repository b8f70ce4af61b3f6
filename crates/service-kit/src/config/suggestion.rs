//! Suggestions in errors about settings: the right name ("did you mean …?"), or a valid value.

/// The beginning of serde's message about an unknown field.
const UNKNOWN: &str = "unknown field `";

/// Adds the most similar known field to serde's message about an unknown one.
pub(super) fn with_hint(message: String) -> String {
    let Some((before, rest)) = message.split_once(UNKNOWN) else {
        return message;
    };
    let Some((wrong, known)) = rest.split_once('`') else {
        return message;
    };
    // Between the names of the list are commas, or "or".
    let names = known.split('`').skip(1).step_by(2);
    match suggest::nearest(wrong, names) {
        Some(name) => format!("{before}{UNKNOWN}{wrong}` (did you mean `{name}`?){known}"),
        None => message,
    }
}

/// What the standard library says about addresses, and what is wanted instead.
const ADDRESSES: &[(&str, &str)] = &[
    (
        "invalid socket address syntax",
        "want an IP address and a port, as in 127.0.0.1:4646,",
    ),
    (
        "invalid IP address syntax",
        "want an IP address, as in 10.0.0.1,",
    ),
];

/// Replaces the standard library's words about an address by the form that is wanted.
pub(super) fn with_form(message: String) -> String {
    let found = ADDRESSES
        .iter()
        .find(|(library, _)| message.contains(library));
    match found {
        Some((library, wanted)) => message.replacen(library, wanted, 1),
        None => message,
    }
}

/// Returns the field that serde's message calls unknown.
pub(super) fn unknown_field(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once(UNKNOWN)?;
    Some(rest.split_once('`')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_known_setting_is_suggested() {
        let said = |wrong: &str| {
            with_hint(format!(
                "x: unknown field `{wrong}`, expected one of `etcd`, `workers`, `node_pool`"
            ))
        };
        assert_eq!(
            said("wrokers"),
            "x: unknown field `wrokers` (did you mean `workers`?), expected one of `etcd`, \
             `workers`, `node_pool`"
        );
        assert!(said("node_pol").contains("did you mean `node_pool`?"));
        assert!(!said("gateway").contains("did you mean"));
        let two = with_hint("unknown field `prefx`, expected `endpoints` or `prefix`".to_owned());
        assert!(two.contains("did you mean `prefix`?"), "{two}");
        assert_eq!(with_hint("no number".to_owned()), "no number");
    }
}
