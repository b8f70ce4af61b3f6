//! Patterns with `*` for any run of characters, as in datacenters, node pools and variable names.
//!
//! Source: Nomad's public behaviour. No other character is special, which is why this is not a
//! general glob library.

/// Returns whether `text` matches `glob`.
pub fn glob_matches(glob: &str, text: &str) -> bool {
    let Some((head, tail)) = glob.split_once('*') else {
        return glob == text;
    };
    let Some(mut rest) = text.strip_prefix(head) else {
        return false;
    };
    let mut parts = tail.split('*').collect::<Vec<_>>();
    let last = parts.pop().unwrap_or_default();
    // The leftmost match of each part leaves the most text for the others.
    for part in parts {
        match rest.find(part) {
            Some(position) => rest = &rest[position + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_star_is_special() {
        for (glob, text, want) in [
            ("*", "", true),
            ("*", "dc1", true),
            ("dc1", "dc1", true),
            ("dc1", "dc10", false),
            ("dc*", "dc10", true),
            ("*-west", "us-west", true),
            ("*-west", "us-west-2", false),
            ("us-*-1*", "us-east-1a", true),
            ("us-*-1*", "us-east", false),
            ("a*a", "a", false),
            ("a*b*a", "aba", true),
            ("dc?", "dc1", false),
            ("dc[12]", "dc1", false),
            ("**", "x", true),
            ("VAULT_TOKEN", "VAULT_TOKEN", true),
            ("VAULT_TOKEN", "VAULT_TOKEN_2", false),
            ("*_LICENSE*", "NOMAD_LICENSE_PATH", true),
            ("*_LICENSE*", "LICENSE", false),
            ("AWS_*", "AWS_KEY", true),
            ("AWS_*", "XAWS_KEY", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(glob_matches(glob, text), want, "{glob} {text}");
        }
    }
}
