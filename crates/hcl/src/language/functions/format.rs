//! `format` and `formatlist`: texts with verbs such as `%s` and `%d`.

use std::iter::Peekable;
use std::str::Chars;

use super::call::Call;
use super::function::Function;
use crate::language::value::{Value, runtime_hint, to_bool, to_float, to_number, to_text, whole};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "format",
        parameters: "text, value…",
        call: format,
    },
    Function {
        name: "formatlist",
        parameters: "text, list…",
        call: formatlist,
    },
];

/// Maximum width and precision.
const MAX_WIDTH: usize = 1_000;

fn format(call: &Call<'_>) -> Result<Value, String> {
    let text = call.text(0)?;
    let arguments: Vec<&Value> = call.arguments[1..].iter().collect();
    formatted(call, &text, &arguments).map(Value::String)
}

/// Formats once per element of the lists, which must have equal lengths; other values repeat.
fn formatlist(call: &Call<'_>) -> Result<Value, String> {
    let text = call.text(0)?;
    let arguments = &call.arguments[1..];
    let mut rows = None;
    for argument in arguments {
        let Value::Array(items) = argument else {
            continue;
        };
        if rows.is_some_and(|rows| rows != items.len()) {
            return Err("its lists must be equally long".to_owned());
        }
        rows = Some(items.len());
    }
    let mut results = Vec::new();
    for row in 0..rows.unwrap_or(1) {
        let values: Vec<&Value> = arguments
            .iter()
            .map(|argument| match argument {
                Value::Array(items) => &items[row],
                other => other,
            })
            .collect();
        results.push(Value::String(formatted(call, &text, &values)?));
    }
    Ok(Value::Array(results))
}

/// One `%` directive: flags, width, precision and verb.
#[derive(Default)]
struct Directive {
    minus: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: Option<usize>,
    precision: Option<usize>,
    verb: char,
}

fn formatted(call: &Call<'_>, text: &str, arguments: &[&Value]) -> Result<String, String> {
    call.pay(text.len())?;
    let mut out = String::new();
    let mut next = 0;
    let mut explicit = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let (directive, position) = directive(&mut chars)?;
        if directive.verb == '%' {
            out.push('%');
            continue;
        }
        let index = position.unwrap_or(next);
        explicit |= position.is_some();
        next = index + 1;
        let argument = arguments
            .get(index)
            .ok_or_else(|| format!("there is no argument {} for %{}", index + 1, directive.verb))?;
        let field = padded(&directive, verb(&directive, argument)?);
        call.pay(field.len())?;
        out.push_str(&field);
    }
    if !explicit && next < arguments.len() {
        return Err(format!(
            "the text uses {next} of its {} arguments",
            arguments.len()
        ));
    }
    Ok(out)
}

/// Parses a directive after `%`; the second value is its argument position, as in `%[1]s`.
fn directive(chars: &mut Peekable<Chars<'_>>) -> Result<(Directive, Option<usize>), String> {
    let mut directive = Directive::default();
    while let Some(flag) = chars.next_if(|c| "-+ 0#".contains(*c)) {
        match flag {
            '-' => directive.minus = true,
            '+' => directive.plus = true,
            ' ' => directive.space = true,
            '0' => directive.zero = true,
            _ => directive.alternate = true,
        }
    }
    directive.width = digits(chars)?;
    if chars.next_if_eq(&'.').is_some() {
        directive.precision = Some(digits(chars)?.unwrap_or(0));
    }
    let mut position = None;
    if chars.next_if_eq(&'[').is_some() {
        let number = digits(chars)?.and_then(|number| number.checked_sub(1));
        let closed = chars.next_if_eq(&']').is_some();
        position = Some(
            number
                .filter(|_| closed)
                .ok_or("write the position as in %[1]s")?,
        );
    }
    directive.verb = chars
        .next()
        .ok_or("it ends in the middle of a % directive: write %% for %")?;
    Ok((directive, position))
}

fn digits(chars: &mut Peekable<Chars<'_>>) -> Result<Option<usize>, String> {
    let mut number: Option<usize> = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        chars.next();
        let value = number.unwrap_or(0) * 10 + digit as usize;
        if value > MAX_WIDTH {
            return Err(format!("widths and precisions go up to {MAX_WIDTH}"));
        }
        number = Some(value);
    }
    Ok(number)
}

fn verb(directive: &Directive, value: &Value) -> Result<String, String> {
    let need = |wanted: &str| format!("%{} takes {wanted}{}", directive.verb, runtime_hint(value));
    match directive.verb {
        's' => to_text(value)
            .map(|text| cut(directive, text))
            .ok_or_else(|| need("a string")),
        'q' => {
            let text = to_text(value).ok_or_else(|| need("a string"))?;
            Ok(Value::String(cut(directive, text)).to_string())
        }
        'v' if directive.alternate => Ok(value.to_string()),
        'v' => Ok(to_text(value).unwrap_or_else(|| value.to_string())),
        't' => to_bool(value)
            .map(|flag| flag.to_string())
            .ok_or_else(|| need("a bool")),
        'd' | 'x' | 'X' | 'o' | 'b' => {
            let number = to_number(value).as_ref().and_then(whole);
            number
                .map(|number| radix(directive, number))
                .ok_or_else(|| need("a whole number"))
        }
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
            let number = to_number(value).ok_or_else(|| need("a number"))?;
            Ok(signed(directive, real(directive, to_float(&number))))
        }
        other => Err(format!(
            "there is no %{other}: use %s, %d, %f, %t, %q or %v"
        )),
    }
}

fn cut(directive: &Directive, text: String) -> String {
    match directive.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text,
    }
}

fn radix(directive: &Directive, number: i128) -> String {
    let size = number.unsigned_abs();
    let digits = match directive.verb {
        'x' => format!("{size:x}"),
        'X' => format!("{size:X}"),
        'o' => format!("{size:o}"),
        'b' => format!("{size:b}"),
        _ => size.to_string(),
    };
    let sign = if number < 0 { "-" } else { "" };
    signed(directive, format!("{sign}{digits}"))
}

fn real(directive: &Directive, number: f64) -> String {
    let precision = directive.precision.unwrap_or(6);
    match directive.verb {
        'f' | 'F' => format!("{number:.precision$}"),
        'e' | 'E' => {
            // Rust writes 1e2, Go 1e+02.
            let text = format!("{number:.precision$e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, digits) = exponent
                .strip_prefix('-')
                .map_or(('+', exponent), |digits| ('-', digits));
            format!("{mantissa}{}{sign}{digits:0>2}", directive.verb)
        }
        _ => number.to_string(),
    }
}

fn signed(directive: &Directive, text: String) -> String {
    match text.starts_with('-') {
        false if directive.plus => format!("+{text}"),
        false if directive.space => format!(" {text}"),
        _ => text,
    }
}

fn padded(directive: &Directive, text: String) -> String {
    let missing = directive
        .width
        .unwrap_or(0)
        .saturating_sub(text.chars().count());
    if missing == 0 {
        return text;
    }
    if directive.minus {
        return text + &" ".repeat(missing);
    }
    if directive.zero && directive.verb != 's' {
        let split = text.len() - text.trim_start_matches(['-', '+', ' ']).len();
        let (sign, digits) = text.split_at(split);
        return format!("{sign}{}{digits}", "0".repeat(missing));
    }
    " ".repeat(missing) + &text
}
