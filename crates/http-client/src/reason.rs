//! Errors of a service as a line of a log or an event: without secrets, and short.

/// Characters of an error that are kept: enough for a line in an event.
const TEXT_MAX: usize = 400;
/// Shorter values stand in too many messages by chance.
const HIDDEN_MIN: usize = 4;

/// Joins the lines of a text.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Hides each of `values` in an error of a service, which may quote its request, and shortens it.
pub fn reason(error: &str, values: &[&str]) -> String {
    let mut reason = error.to_owned();
    for value in values.iter().filter(|value| value.len() >= HIDDEN_MIN) {
        reason = reason.replace(value, "(hidden)");
    }
    if let Some((end, _)) = reason.char_indices().nth(TEXT_MAX) {
        reason.truncate(end);
        reason.push('…');
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_before_a_text_is_shortened() {
        let text = one_line("1 error:\n\t* no such token hvs.SECRET for abc\n\n");
        assert_eq!(
            reason(&text, &["hvs.SECRET", "abc", ""]),
            "1 error: * no such token (hidden) for abc"
        );
        let long = format!("{}hvs.SECRET", "x".repeat(TEXT_MAX - 4));
        let short = reason(&long, &["hvs.SECRET"]);
        assert!(!short.contains("hvs"), "{short}");
        assert_eq!(short.chars().count(), TEXT_MAX + 1);
    }
}
