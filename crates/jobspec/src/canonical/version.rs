//! Version constraints such as `>= 1.2, < 2.0` and `~> 1.4`.
//!
//! The crate `placement`, which compares versions with the nodes' reports, can read every version
//! that passes here; a test compares the two.

use std::sync::LazyLock;

use model::Operator;
use regex::Regex;

/// One comparison: an operator, which may be left out, and a version.
static COMPARISON: LazyLock<Regex> = LazyLock::new(|| {
    let operator = r"(=|!=|>|<|>=|<=|~>)?";
    // Eighteen digits fit into 64 bits.
    let number = "[0-9]{1,18}";
    let label = "[0-9A-Za-z~][0-9A-Za-z.~-]*";
    let version =
        format!(r"v?{number}(?:\.{number})*(?:-{label}|[A-Za-z~][0-9A-Za-z.~-]*)?(?:\+{label})?");
    Regex::new(&format!(r"^\s*{operator}\s*{version}\s*$")).expect("the pattern is fixed")
});

/// Returns the problem of the right side of a `version` or `semver` constraint, if any.
pub(super) fn problem(operator: Operator, text: &str) -> Option<String> {
    for part in text.split(',') {
        let Some(comparison) = COMPARISON.captures(part) else {
            return Some(format!(
                "malformed constraint {part:?}: write comparisons such as \">= 1.2, < 2.0\"",
            ));
        };
        let sign = comparison.get(1).map_or("", |sign| sign.as_str());
        if operator == Operator::Semver && sign == "~>" {
            return Some("semver knows no ~>: use version, or write \">= 1.4, < 2\"".to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use placement::version::{Bounds, Style};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comparisons_joined_by_commas_are_accepted_and_nothing_else() {
        for text in [
            "1.2",
            ">= 1.2",
            ">=1.2,<2",
            "~> 1.4",
            "!= 1.0.0-beta1+build.7",
            "= v5.10.0",
            "1.2rc1",
        ] {
            assert_eq!(problem(Operator::Version, text), None, "{text}");
        }
        for text in [
            "",
            "latest",
            ">",
            ">= 1.2,",
            "=> 1.2",
            ">= 1.2 < 2",
            "1..2",
            "^1.2",
            "1.2-",
            "9e99e9+",
        ] {
            assert!(problem(Operator::Version, text).is_some(), "{text}");
        }
        assert!(
            problem(Operator::Semver, "~> 1.4")
                .unwrap()
                .contains("use version")
        );
        assert_eq!(problem(Operator::Semver, ">= 1.4, < 2"), None);
    }

    proptest! {
        #[test]
        fn an_accepted_version_can_be_compared_with_those_of_nodes(
            text in "((=|!=|>|<|>=|<=|~>|)? ?v?[0-9]{1,20}(\\.[0-9]{1,3}){0,3}(-?[a-z0-9.~-]{0,4})?(\\+[a-z.]{0,3})?,? ?){1,2}",
        ) {
            for (operator, style) in
                [(Operator::Version, Style::Lenient), (Operator::Semver, Style::Semver)]
            {
                if problem(operator, &text).is_none() {
                    prop_assert!(Bounds::parse(style, &text).is_some(), "{text:?}");
                }
            }
        }
    }
}
