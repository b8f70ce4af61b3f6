//! Verbs of texts, quotes and padding.

use super::flags::Flags;
use crate::format::plain;
use crate::value::Value;

pub(super) fn bad(verb: char, value: &Value) -> String {
    format!("%!{verb}({}={})", value.type_name(), plain(value))
}

pub(super) fn cut(text: String, precision: Option<usize>, is_text: bool) -> String {
    match precision {
        Some(length) if is_text => text.chars().take(length).collect(),
        _ => text,
    }
}

pub(super) fn text_verb(verb: char, text: &str, flags: Flags) -> String {
    let text = if matches!(verb, 'x' | 'X') {
        text.to_owned()
    } else {
        cut(text.to_owned(), flags.precision, true)
    };
    let done = match verb {
        's' => text,
        'q' if flags.sharp && !text.contains(['`', '\n', '\r']) => format!("`{text}`"),
        'q' => quoted(&text, flags.plus),
        _ => {
            let bytes = text.bytes().take(flags.precision.unwrap_or(usize::MAX));
            let digits: Vec<_> = bytes
                .map(|byte| {
                    if verb == 'x' {
                        format!("{byte:02x}")
                    } else {
                        format!("{byte:02X}")
                    }
                })
                .collect();
            let prefix = match (flags.sharp, verb) {
                (false, _) => "",
                (true, 'x') => "0x",
                (true, _) => "0X",
            };
            if digits.is_empty() {
                String::new()
            } else if flags.space {
                format!("{prefix}{}", digits.join(&format!(" {prefix}")))
            } else {
                format!("{prefix}{}", digits.concat())
            }
        }
    };
    pad(done, flags)
}

/// A text in double quotes with Go's escapes.
pub(crate) fn quoted(text: &str, ascii: bool) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            _ if letter < ' ' || letter == '\u{7f}' => {
                out.push_str(&format!("\\x{:02x}", u32::from(letter)))
            }
            _ if !letter.is_ascii() && (ascii || letter.is_control()) => {
                let code = u32::from(letter);
                out.push_str(&if code > 0xffff {
                    format!("\\U{code:08x}")
                } else {
                    format!("\\u{code:04x}")
                });
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

pub(super) fn pad(text: String, flags: Flags) -> String {
    let width = flags.width.unwrap_or(0);
    let missing = width.saturating_sub(text.chars().count());
    if missing == 0 {
        return text;
    }
    if flags.minus {
        format!("{text}{}", " ".repeat(missing))
    } else if flags.zero {
        format!("{}{text}", "0".repeat(missing))
    } else {
        format!("{}{text}", " ".repeat(missing))
    }
}
