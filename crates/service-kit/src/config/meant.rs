//! What may have been meant by a setting that there is not.

/// How many letters may differ: a swap and a typo.
const MAX_DISTANCE: usize = 2;

/// What serde says before the name that it does not know.
const UNKNOWN: &str = "unknown field `";

/// Adds to serde's message about an unknown field the known one that is spelt nearly so.
pub(super) fn with_hint(message: String) -> String {
    let Some((before, rest)) = message.split_once(UNKNOWN) else {
        return message;
    };
    let Some((wrong, known)) = rest.split_once('`') else {
        return message;
    };
    // Between the names of the list are commas, or "or".
    let names = known.split('`').skip(1).step_by(2);
    let near = names
        .map(|name| (strsim::osa_distance(wrong, name), name))
        .filter(|(distance, _)| *distance <= MAX_DISTANCE.min(wrong.len() / 2));
    match near.min_by_key(|(distance, _)| *distance) {
        Some((_, name)) => format!("{before}{UNKNOWN}{wrong}` (did you mean `{name}`?){known}"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_setting_that_is_spelt_nearly_so_is_named() {
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
