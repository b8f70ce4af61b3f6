//! Patterns with `*` for any run of characters.

/// Tells whether `text` matches `pattern`.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, want) in [
            ("VAULT_TOKEN", "VAULT_TOKEN", true),
            ("VAULT_TOKEN", "VAULT_TOKEN_2", false),
            ("*_LICENSE*", "NOMAD_LICENSE_PATH", true),
            ("*_LICENSE*", "LICENSE", false),
            ("AWS_*", "AWS_KEY", true),
            ("AWS_*", "XAWS_KEY", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
    }
}
