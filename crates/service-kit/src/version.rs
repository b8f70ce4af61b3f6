//! Version of this process: that of its sources, with the revision of its image.

/// Set by images: the revision that they were built from.
const REVISION: &str = "KAFILA_REVISION";

/// Shown characters of a revision: enough of a commit.
const SHOWN: usize = 12;

/// Returns the semantic version, such as `0.1.0`; in an image that knows its revision, such as
/// `0.1.0+6a992e0c1234`.
pub fn version() -> String {
    let revision = std::env::var(REVISION).unwrap_or_default();
    with_revision(env!("CARGO_PKG_VERSION"), &revision)
}

fn with_revision(version: &str, revision: &str) -> String {
    // The characters of build metadata. Source: Semantic Versioning 2.0.0, item 10.
    let is_allowed = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let shown: String = revision.chars().filter(is_allowed).take(SHOWN).collect();
    match shown.as_str() {
        "" | "unknown" => version.to_owned(),
        shown => format!("{version}+{shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_revision_is_build_metadata() {
        for (revision, expected) in [
            ("", "1.2.3"),
            ("unknown", "1.2.3"),
            ("second", "1.2.3+second"),
            ("6a992e0c6a992e0c6a992e0c", "1.2.3+6a992e0c6a99"),
            ("a b+c\n", "1.2.3+abc"),
        ] {
            assert_eq!(with_revision("1.2.3", revision), expected);
        }
    }
}
