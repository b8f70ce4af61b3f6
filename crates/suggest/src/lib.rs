//! Suggestions of the nearest known name ("Did you mean …?"), and lists of names in a sentence.

/// Maximum edit distance: 2 covers a swap plus a typo, and rarely matches unrelated words.
const MAX_DISTANCE: usize = 2;

/// Returns the nearest name within the maximum distance; the first of equals. Insertions, deletions,
/// replacements and swaps of neighbours count one each.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Short words are close to each other: `to` is no typo of `cpu`.
    let allowed = MAX_DISTANCE.min(wrong.chars().count().saturating_sub(1) / 2);
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        if name.eq_ignore_ascii_case(wrong) {
            return Some(name);
        }
        let distance = strsim::osa_distance(wrong, name);
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns ` Did you mean "x"?`, or an empty text.
pub fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wrong, known)
        .map(|name| format!(" Did you mean \"{name}\"?"))
        .unwrap_or_default()
}

/// Joins names: `a, b and c`.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>, last: &str) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => (*only).to_owned(),
        Some((final_name, others)) => format!("{} {last} {final_name}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_the_word_and_an_unrelated_word_finds_none() {
        let known = ["cpu", "memory", "memory_max", "count"];
        assert_eq!(nearest("memroy", known), Some("memory"));
        assert_eq!(nearest("Count", known), Some("count"));
        assert_eq!(nearest("cuont", known), Some("count"));
        assert_eq!(nearest("cp", known), None);
        assert_eq!(nearest("volume", known), None);
        assert_eq!(hint("memroy", known), " Did you mean \"memory\"?");
        assert_eq!(hint("x", known), "");
    }

    #[test]
    fn names_are_listed_with_the_last_one_joined() {
        assert_eq!(list([], "or"), "");
        assert_eq!(list(["a"], "or"), "a");
        assert_eq!(list(["a", "b", "c"], "or"), "a, b or c");
    }
}
