//! Rendering of file errors: Nomad's line, then the place with a caret under it.

use jobspec::{ParseError, ParseErrors};
use model::FieldErrors;

use crate::output::colour::Colour;
use crate::output::printable;

/// Returns every error with its place; a blank line between them.
pub(crate) fn errors(errors: &ParseErrors, colour: Colour) -> String {
    let texts: Vec<String> = errors.0.iter().map(|error| one(error, colour)).collect();
    texts.join("\n")
}

/// Returns the line in Nomad's format, and the place below it:
///
/// ```text
/// web.hcl:2,2-8: Unsupported argument; An argument named "memroy" is not expected here.
///   |
/// 2 |   memroy = 100
///   |   ^^^^^^
/// ```
fn one(error: &ParseError, colour: Colour) -> String {
    let number = error.line.to_string();
    let margin = " ".repeat(number.len());
    let bar = colour.blue("|");
    let before = error.snippet.chars().take(error.caret.start);
    // Tabs stay, so that the caret is aligned.
    let pad: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let carets = "^".repeat(error.caret.len().max(1));
    let line = error.one_line();
    format!(
        "{}\n{margin} {bar}\n{} {bar} {}\n{margin} {bar} {pad}{}\n",
        printable(&line),
        colour.blue(&number),
        tabs_kept(&error.snippet),
        colour.red(&carets),
    )
}

fn tabs_kept(text: &str) -> String {
    let shown = |c: char| {
        if c.is_control() && c != '\t' {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(shown).collect()
}

/// Returns the line above a list of errors.
pub(crate) fn counted(errors: &FieldErrors) -> String {
    let plural = if errors.0.len() == 1 { "" } else { "s" };
    format!("{} error{plural} occurred:", errors.0.len())
}

/// Returns warnings under their heading; nothing for none.
pub(crate) fn warnings(warnings: &[String], colour: Colour) -> String {
    if warnings.is_empty() {
        return String::new();
    }
    let plural = if warnings.len() == 1 { "" } else { "s" };
    let mut text = format!(
        "{}\n{} warning{plural}:\n\n",
        colour.bold("Job Warnings:"),
        warnings.len()
    );
    for warning in warnings {
        text.push_str(&format!("* {}\n", printable(warning)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error() -> ParseError {
        ParseError {
            file: "web.hcl".to_owned(),
            line: 12,
            column: 2,
            end_line: 12,
            end_column: 8,
            summary: "Unsupported argument".to_owned(),
            detail: "An argument named \"memroy\" is not expected here.".to_owned(),
            snippet: "\tmemroy = 100".to_owned(),
            caret: 1..7,
        }
    }

    #[test]
    fn the_line_comes_first_and_the_caret_under_the_word() {
        let expected = "\
web.hcl:12,2-8: Unsupported argument; An argument named \"memroy\" is not expected here.
   |
12 | \tmemroy = 100
   | \t^^^^^^
";
        assert_eq!(one(&error(), Colour::Off), expected);
        assert!(one(&error(), Colour::On).contains("\x1b[31m^^^^^^\x1b[0m"));
        let two = ParseErrors(vec![error(), error()]);
        assert_eq!(errors(&two, Colour::Off), format!("{expected}\n{expected}"));
    }

    #[test]
    fn a_place_between_characters_still_has_a_caret() {
        let mut error = error();
        error.caret = 3..3;
        error.snippet = "a\x1b[2Jb".to_owned();
        let text = one(&error, Colour::Off);
        assert!(text.ends_with("|    ^\n"), "{text}");
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn lists_say_how_many_they_hold() {
        let mut errors = FieldErrors::default();
        errors.push("priority", "101 is too high");
        assert_eq!(counted(&errors), "1 error occurred:");
        errors.push("name", "empty");
        assert_eq!(counted(&errors), "2 errors occurred:");
        assert_eq!(warnings(&[], Colour::Off), "");
        assert_eq!(
            warnings(&["old".to_owned()], Colour::Off),
            "Job Warnings:\n1 warning:\n\n* old\n"
        );
    }
}
