//! How to see the next page of a list: the same command, with a token.

use std::ffi::OsString;

/// Returns the line that says how to see more; it goes to standard error so that pipes stay clean.
///
/// `words` are those of the command, the program's name first: filters and the gateway's address
/// belong to the next page as much as to this one.
pub(super) fn next_page(words: &[OsString], token: &str) -> String {
    let mut line = "kafila".to_owned();
    for word in words.iter().skip(1) {
        let word = word.to_string_lossy();
        if word.starts_with("--page-token") {
            continue;
        }
        // As people write flags here, and the documents.
        let word = word
            .strip_prefix('-')
            .filter(|it| it.starts_with('-'))
            .unwrap_or(&word);
        line.push(' ');
        line.push_str(&quoted(word));
    }
    line.push_str(&format!(" -page-token={}", quoted(token)));
    format!("Results have been paginated. To get the next page run:\n\n{line}")
}

/// Returns a word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_asked_for_by_the_same_command() {
        let table = [
            ("kafila eval list", "kafila eval list -page-token=t"),
            (
                "kafila eval list --job=web --per-page=1 --page-token=s",
                "kafila eval list -job=web -per-page=1 -page-token=t",
            ),
            (
                "kafila --address=http://a:1 node status --quiet --namespace=*",
                "kafila -address=http://a:1 node status -quiet '-namespace=*' -page-token=t",
            ),
            (
                "kafila eval list --job=it's",
                "kafila eval list '-job=it'\\''s' -page-token=t",
            ),
        ];
        for (line, expected) in table {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let said = next_page(&words, "t");
            assert_eq!(said.lines().last(), Some(expected), "{line}");
        }
    }
}
