//! Lists: query options, output, and the command for the next page.

use std::ffi::OsString;

use proto::v1;
use serde::Serialize;

use crate::args::page::Page;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;
use crate::output::shell::quoted;

/// Returns the options of a list request.
pub(super) fn options(context: &Context, namespace: &str, page: &Page) -> v1::QueryOptions {
    v1::QueryOptions {
        per_page: page.per_page.unwrap_or_default(),
        next_token: page.page_token.clone().unwrap_or_default(),
        ..context.connection.options(namespace)
    }
}

/// Prints a list, as JSON objects `J` or as `text`, and the command for the next page.
pub(super) fn show<'a, T, J>(
    context: &Context,
    (items, next_token): &'a (Vec<T>, String),
    json: bool,
    text: impl FnOnce(&'a [T]) -> String,
) -> Result<Exit, Error>
where
    J: From<&'a T> + Serialize,
{
    let text = if json {
        pretty(&items.iter().map(J::from).collect::<Vec<J>>())
    } else {
        text(items)
    };
    context.printer.out(&text)?;
    if !next_token.is_empty() {
        context.printer.err(&next_page(&context.words, next_token));
    }
    Ok(Exit::Success)
}

/// Returns the hint for the next page, which goes to standard error to keep pipes clean.
///
/// `words` is the command line, the program's name first: the next page needs the same filters and
/// the same gateway.
fn next_page(words: &[OsString], token: &str) -> String {
    let mut line = "kafila".to_owned();
    for word in words.iter().skip(1) {
        let word = word.to_string_lossy();
        if word.starts_with("--page-token") {
            continue;
        }
        // The documents write flags with one dash.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_has_the_same_command_line() {
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
