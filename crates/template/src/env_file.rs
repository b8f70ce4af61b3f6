//! Environment files: `KEY=VALUE` lines of a rendered template.
//!
//! Source: Nomad's documentation of `env` in a template block: comments, `export`, quotes.

use std::collections::BTreeMap;

use crate::error::{Error, Fault};

/// The variables of `text`, name → value; of a name that occurs again, the last value.
///
/// A value without quotes ends before ` #`. Double quotes hold the escapes of Go, single quotes hold none.
///
/// # Errors
/// The first line that is not `KEY=VALUE`, a comment or blank, with its place.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, Error> {
    let mut variables = BTreeMap::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        match variable(line) {
            Ok(Some((name, value))) => {
                variables.insert(name, value);
            }
            Ok(None) => {}
            Err((offset, message)) => return Err(Fault::new(at + offset, message).locate(text)),
        }
        at += line.len();
    }
    Ok(variables)
}

type Wrong = (usize, String);

fn variable(line: &str) -> Result<Option<(String, String)>, Wrong> {
    let start = line.len() - line.trim_start().len();
    let rest = line[start..].trim_end();
    if rest.is_empty() || rest.starts_with('#') {
        return Ok(None);
    }
    let assignment = rest.strip_prefix("export ").map_or(rest, str::trim_start);
    let Some((name, value)) = assignment.split_once('=') else {
        return Err((
            start,
            "a line of an environment file is NAME=VALUE, a comment behind #, or blank".to_owned(),
        ));
    };
    let name = name.trim_end();
    let is_name = !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.'));
    if !is_name {
        return Err((
            start,
            format!("{name:?} is not the name of a variable: use letters, digits and _"),
        ));
    }
    let value = unquote(value.trim_start())
        .map_err(|message| (start, format!("the value of {name}: {message}")))?;
    if value.contains('\0') {
        return Err((
            start,
            format!("the value of {name} has a null character: remove it"),
        ));
    }
    Ok(Some((name.to_owned(), value)))
}

/// The value, whose parts may be quoted: `a"b c"'d'` is `ab cd`.
fn unquote(written: &str) -> Result<String, String> {
    let mut value = String::new();
    // Up to here, spaces at the end are part of the value: they were quoted.
    let mut kept = 0;
    let mut rest = written;
    while let Some(letter) = rest.chars().next() {
        match letter {
            '"' => {
                let end = closing(&rest[1..]).ok_or("a double quote is not closed on its line")?;
                value.push_str(&crate::lexer::unescape(&rest[1..=end], '"')?);
                kept = value.len();
                rest = &rest[end + 2..];
            }
            '\'' => {
                let end = rest[1..]
                    .find('\'')
                    .ok_or("a single quote is not closed on its line")?;
                value.push_str(&rest[1..=end]);
                kept = value.len();
                rest = &rest[end + 2..];
            }
            '#' if value.len() == kept && written.len() == rest.len()
                || value.ends_with([' ', '\t']) && letter == '#' =>
            {
                break;
            }
            letter => {
                value.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
    }
    let end = kept + value[kept..].trim_end().len();
    value.truncate(end);
    Ok(value)
}

/// The position of the double quote that closes `text`.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (position, letter) in text.char_indices() {
        match letter {
            '"' if !escaped => return Some(position),
            _ => escaped = letter == '\\' && !escaped,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_variables() {
        for (line, name, value) in [
            ("A=b", "A", "b"),
            ("  export A = b c  ", "A", "b c"),
            ("A=", "A", ""),
            ("A=b # a comment", "A", "b"),
            ("A=# a comment", "A", ""),
            ("A=b#c", "A", "b#c"),
            ("A=\"b # c\" # d", "A", "b # c"),
            ("A=\"b\\nc \\\"d\\\" \\u00e4\"", "A", "b\nc \"d\" ä"),
            ("A='b \\n \"c\" '", "A", "b \\n \"c\" "),
            ("A=b'c d'\"e\"", "A", "bc de"),
            ("A=b=c", "A", "b=c"),
            ("dash-ed.x=1", "dash-ed.x", "1"),
        ] {
            assert_eq!(
                parse(line).unwrap(),
                BTreeMap::from([(name.to_owned(), value.to_owned())]),
                "{line}"
            );
        }
        let file = "# first\n\nA=1\r\nB=2\nA=3\n";
        assert_eq!(
            parse(file).unwrap(),
            BTreeMap::from([("A".into(), "3".into()), ("B".into(), "2".into())])
        );
    }

    #[test]
    fn other_lines_are_errors_with_their_place() {
        for (text, line, message) in [
            ("A=1\nnothing\n", 2, "NAME=VALUE"),
            ("\n\n 1A=2", 3, "\"1A\" is not the name of a variable"),
            ("=x", 1, "\"\" is not the name"),
            ("A B=x", 1, "\"A B\" is not the name"),
            ("A=\"x", 1, "not closed"),
            ("A='x", 1, "not closed"),
            ("A=\"\\q\"", 1, "unknown escape"),
            ("A=\"\\x00\"", 1, "null character"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.message.contains(message), "{error}");
        }
    }
}
