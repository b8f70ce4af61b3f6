//! `printf`: Go's verbs, flags, width, precision and argument indexes.

mod flags;
mod number;
mod text;

use std::iter::Peekable;
use std::str::Chars;

use flags::Flags;
use number::{float_verb, integer, integer_verb, number_padded, signed};
use text::{bad, cut, pad, text_verb};

pub(crate) use number::as_float;
pub(crate) use text::quoted;

use super::{float, plain};
use crate::budget::Budget;
use crate::value::Value;

/// Go ignores larger widths and precisions.
const SIZE_MAX: usize = 1_000_000;

/// The text that `format` makes of `values`. A verb that does not fit its value becomes a note, as in Go:
/// `%!d(string=x)`.
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
