//! `printf`: Go's verbs, flags, width, precision and argument indexes.

use std::iter::Peekable;
use std::str::Chars;

use super::{float, plain, shortest};
use crate::budget::Budget;
use crate::value::{Value, widen};

/// Go ignores larger widths and precisions.
const SIZE_MAX: usize = 1_000_000;

/// The text that `format` makes of `values`. A verb that does not fit its value becomes a note, as in Go: `%!d(string=x)`.
///
/// # Errors
/// The text would be too large.
pub(crate) fn printf(format: &str, values: &[Value]) -> Result<String, String> {
    let mut printer = Printer {
        letters: format.chars().peekable(),
        values,
        next: 0,
        reordered: false,
    };
    let mut out = String::new();
    while let Some(letter) = printer.letters.next() {
        if letter == '%' {
            printer.verb(&mut out)?;
        } else {
            out.push(letter);
        }
        Budget::room(out.len())?;
    }
    if !printer.reordered && printer.next < values.len() {
        let extra: Vec<_> = values[printer.next..]
            .iter()
            .map(|value| match value {
                Value::Nil | Value::Nothing => "<nil>".to_owned(),
                _ => format!("{}={}", value.type_name(), plain(value)),
            })
            .collect();
        out.push_str(&format!("%!(EXTRA {})", extra.join(", ")));
    }
    Ok(out)
}

#[derive(Default, Clone, Copy)]
struct Flags {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

struct Printer<'a> {
    letters: Peekable<Chars<'a>>,
    values: &'a [Value],
    next: usize,
    /// An index was used, so values that are left over are not an error.
    reordered: bool,
}

impl Printer<'_> {
    fn verb(&mut self, out: &mut String) -> Result<(), String> {
        let mut flags = Flags::default();
        while let Some(letter) = self.letters.peek() {
            match letter {
                '-' => flags.minus = true,
                '+' => flags.plus = true,
                '#' => flags.sharp = true,
                ' ' => flags.space = true,
                '0' => flags.zero = true,
                _ => break,
            }
            self.letters.next();
        }
        let mut bad_index = !self.index();
        match self.size() {
            Ok(size) => flags.width = size,
            Err(negative) => {
                flags.width = Some(negative);
                flags.minus = true;
            }
        }
        if self.letters.next_if_eq(&'.').is_some() {
            bad_index |= !self.index();
            flags.precision = Some(self.size().ok().flatten().unwrap_or(0));
        }
        bad_index |= !self.index();
        let Some(verb) = self.letters.next() else {
            out.push_str("%!(NOVERB)");
            return Ok(());
        };
        if verb == '%' {
            out.push('%');
            return Ok(());
        }
        if bad_index {
            out.push_str(&format!("%!{verb}(BADINDEX)"));
            return Ok(());
        }
        let Some(value) = self.values.get(self.next) else {
            out.push_str(&format!("%!{verb}(MISSING)"));
            return Ok(());
        };
        self.next += 1;
        out.push_str(&one(verb, value, flags)?);
        Ok(())
    }

    /// Reads `[n]`, if it is there; false if it names no value.
    fn index(&mut self) -> bool {
        if self.letters.next_if_eq(&'[').is_none() {
            return true;
        }
        self.reordered = true;
        let mut digits = String::new();
        for letter in self.letters.by_ref() {
            if letter == ']' {
                break;
            }
            digits.push(letter);
        }
        match digits.parse::<usize>() {
            Ok(number) if number >= 1 && number <= self.values.len() => {
                self.next = number - 1;
                true
            }
            _ => false,
        }
    }

    /// A width or precision, written out or as `*`. `Err` holds a negative one's size.
    fn size(&mut self) -> Result<Option<usize>, usize> {
        if self.letters.next_if_eq(&'*').is_some() {
            let value = self.values.get(self.next);
            self.next += 1;
            return match value {
                Some(Value::Int(size)) => {
                    let absolute = usize::try_from(size.unsigned_abs())
                        .unwrap_or(SIZE_MAX)
                        .min(SIZE_MAX);
                    if *size < 0 {
                        Err(absolute)
                    } else {
                        Ok(Some(absolute))
                    }
                }
                _ => Ok(None),
            };
        }
        let mut size: Option<usize> = None;
        while let Some(digit) = self.letters.peek().and_then(|letter| letter.to_digit(10)) {
            size =
                Some((size.unwrap_or(0) * 10 + usize::try_from(digit).unwrap_or(0)).min(SIZE_MAX));
            self.letters.next();
        }
        Ok(size)
    }
}

fn one(verb: char, value: &Value, flags: Flags) -> Result<String, String> {
    if verb == 'T' {
        return Ok(pad(value.type_name().to_owned(), flags));
    }
    match (verb, value) {
        ('v', _) if flags.sharp => Ok(pad(source_form(value), flags)),
        ('v', Value::Float(number)) => Ok(number_padded(signed(float(*number), flags), flags)),
        ('v', Value::Int(number)) => Ok(number_padded(
            integer(number.unsigned_abs(), *number < 0, 10, flags),
            flags,
        )),
        ('v', Value::Uint(number)) => Ok(number_padded(integer(*number, false, 10, flags), flags)),
        ('v', Value::List(list)) => each(&list.items, |item| one('v', item, flags)),
        ('v', _) => Ok(pad(
            cut(plain(value), flags.precision, value.as_text().is_some()),
            flags,
        )),
        ('t', Value::Bool(value)) => Ok(pad(value.to_string(), flags)),
        ('s' | 'q' | 'x' | 'X', _) if value.as_text().is_some() => {
            Ok(text_verb(verb, &plain(value), flags))
        }
        (_, Value::Int(number)) => {
            integer_verb(verb, number.unsigned_abs(), *number < 0, value, flags)
        }
        (_, Value::Uint(number)) => integer_verb(verb, *number, false, value, flags),
        ('e' | 'E' | 'f' | 'F' | 'g' | 'G', Value::Float(number)) => Ok(number_padded(
            signed(float_verb(verb, *number, flags), flags),
            flags,
        )),
        (_, Value::List(list)) => each(&list.items, |item| one(verb, item, flags)),
        (_, Value::Nil | Value::Nothing) => Ok(format!("%!{verb}(<nil>)")),
        _ => Ok(bad(verb, value)),
    }
}

fn each(
    items: &[Value],
    mut print: impl FnMut(&Value) -> Result<String, String>,
) -> Result<String, String> {
    let mut out = String::from("[");
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(' ');
        }
        out.push_str(&print(item)?);
        Budget::room(out.len())?;
    }
    out.push(']');
    Ok(out)
}

fn bad(verb: char, value: &Value) -> String {
    format!("%!{verb}({}={})", value.type_name(), plain(value))
}

fn cut(text: String, precision: Option<usize>, is_text: bool) -> String {
    match precision {
        Some(length) if is_text => text.chars().take(length).collect(),
        _ => text,
    }
}

fn text_verb(verb: char, text: &str, flags: Flags) -> String {
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

fn integer_verb(
    verb: char,
    magnitude: u64,
    negative: bool,
    value: &Value,
    flags: Flags,
) -> Result<String, String> {
    let radix = match verb {
        'd' => 10,
        'b' => 2,
        'o' | 'O' => 8,
        'x' | 'X' => 16,
        'c' | 'q' | 'U' => {
            let letter = u32::try_from(magnitude)
                .ok()
                .and_then(char::from_u32)
                .filter(|_| !negative)
                .unwrap_or('\u{fffd}');
            return Ok(pad(
                match verb {
                    'c' => letter.to_string(),
                    'q' => format!(
                        "'{}'",
                        quoted(&letter.to_string(), false)
                            .trim_matches('"')
                            .replace('\'', "\\'")
                    ),
                    _ => format!("U+{magnitude:04X}"),
                },
                flags,
            ));
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 't' | 's' => return Ok(bad(verb, value)),
        _ => return Ok(bad(verb, value)),
    };
    let digits = integer(
        magnitude,
        negative,
        radix,
        Flags {
            sharp: flags.sharp || verb == 'O',
            ..flags
        },
    );
    let digits = if verb == 'O' {
        digits.replacen("0", "0o", 1)
    } else {
        digits
    };
    Ok(number_padded(
        if verb == 'X' {
            digits.to_uppercase()
        } else {
            digits
        },
        flags,
    ))
}

fn integer(mut magnitude: u64, negative: bool, radix: u32, flags: Flags) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(magnitude % u64::from(radix)).unwrap_or(0);
        digits.push(char::from_digit(digit, radix).unwrap_or('0'));
        magnitude /= u64::from(radix);
        if magnitude == 0 {
            break;
        }
    }
    while digits.len() < flags.precision.unwrap_or(0) {
        digits.push('0');
    }
    let mut text: String = digits.iter().rev().collect();
    if flags.sharp {
        text = match radix {
            16 => format!("0x{text}"),
            8 => format!("0{text}"),
            2 => format!("0b{text}"),
            _ => text,
        };
    }
    signed(if negative { format!("-{text}") } else { text }, flags)
}

fn signed(text: String, flags: Flags) -> String {
    if text.starts_with(['-', '+']) {
        if text == "+Inf" && !flags.plus {
            return text;
        }
        return text;
    }
    match (flags.plus, flags.space) {
        (true, _) => format!("+{text}"),
        (false, true) => format!(" {text}"),
        _ => text,
    }
}

fn float_verb(verb: char, number: f64, flags: Flags) -> String {
    if !number.is_finite() {
        return float(number);
    }
    let text = match verb {
        'f' | 'F' => format!("{number:.*}", flags.precision.unwrap_or(6)),
        'e' | 'E' => exponent(&format!("{number:.*e}", flags.precision.unwrap_or(6))),
        _ => match flags.precision {
            None => shortest(number, 6),
            Some(precision) => general(number, precision.max(1)),
        },
    };
    if verb.is_uppercase() {
        text.to_uppercase()
    } else {
        text
    }
}

/// `%.Ng`: `precision` significant digits, without zeros at the end.
fn general(number: f64, precision: usize) -> String {
    let scientific = format!("{number:.*e}", precision - 1);
    let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i64 = power.parse().unwrap_or(0);
    let strip = |digits: &str| {
        if digits.contains('.') {
            digits
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
        } else {
            digits.to_owned()
        }
    };
    if power < -4 || power >= i64::try_from(precision).unwrap_or(i64::MAX) {
        return exponent(&format!("{}e{power}", strip(mantissa)));
    }
    let decimals = i64::try_from(precision).unwrap_or(i64::MAX) - 1 - power;
    strip(&format!(
        "{number:.*}",
        usize::try_from(decimals).unwrap_or(0)
    ))
}

/// Rust's exponent (`1e5`) in Go's form (`1e+05`).
fn exponent(text: &str) -> String {
    let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, digits) = power
        .strip_prefix('-')
        .map_or(('+', power), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// A value as Go source, as `%#v` prints it.
fn source_form(value: &Value) -> String {
    match value {
        Value::List(list) => format!(
            "[]interface {{}}{{{}}}",
            list.items
                .iter()
                .map(source_form)
                .collect::<Vec<_>>()
                .join(", ")
        ),
        Value::Uint(number) => format!("0x{number:x}"),
        Value::Nil | Value::Nothing => "<nil>".to_owned(),
        _ => match (value.as_text(), value.as_map()) {
            (Some(text), _) => quoted(text, false),
            (None, Some(map)) => {
                let entries: Vec<_> = map
                    .iter()
                    .map(|(key, value)| format!("{}:{}", quoted(key, false), source_form(value)))
                    .collect();
                format!("map[string]interface {{}}{{{}}}", entries.join(", "))
            }
            _ => plain(value),
        },
    }
}

fn pad(text: String, flags: Flags) -> String {
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

/// A number fills its width with zeros behind its sign.
fn number_padded(text: String, flags: Flags) -> String {
    let width = flags.width.unwrap_or(0);
    let missing = width.saturating_sub(text.chars().count());
    if !flags.zero || flags.minus || missing == 0 || text.ends_with("Inf") || text == "NaN" {
        return pad(
            text,
            Flags {
                zero: false,
                ..flags
            },
        );
    }
    let sign = usize::from(text.starts_with(['-', '+', ' ']));
    let prefix = if text[sign..].starts_with("0x") || text[sign..].starts_with("0X") {
        2
    } else {
        0
    };
    format!(
        "{}{}{}",
        &text[..sign + prefix],
        "0".repeat(missing),
        &text[sign + prefix..]
    )
}

/// `print`: a space between two values of which neither is a text.
pub(crate) fn print(values: &[Value]) -> String {
    let mut out = String::new();
    for (position, value) in values.iter().enumerate() {
        let both_numbers =
            position > 0 && value.as_text().is_none() && values[position - 1].as_text().is_none();
        if both_numbers {
            out.push(' ');
        }
        out.push_str(&plain(value));
    }
    out
}

/// A number as a float, if it is one.
pub(crate) fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(widen(*number)),
        #[expect(
            clippy::cast_precision_loss,
            reason = "Go's conversion rounds to the nearest float too"
        )]
        Value::Uint(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}
