//! Verbs of integers and floats.

use super::flags::Flags;
use super::text::{bad, pad, quoted};
use crate::format::{float, shortest};
use crate::value::{Value, widen};

pub(super) fn integer_verb(
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

pub(super) fn integer(mut magnitude: u64, negative: bool, radix: u32, flags: Flags) -> String {
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

pub(super) fn signed(text: String, flags: Flags) -> String {
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

pub(super) fn float_verb(verb: char, number: f64, flags: Flags) -> String {
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
pub(super) fn general(number: f64, precision: usize) -> String {
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
pub(super) fn exponent(text: &str) -> String {
    let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, digits) = power
        .strip_prefix('-')
        .map_or(('+', power), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// A number fills its width with zeros behind its sign.
pub(super) fn number_padded(text: String, flags: Flags) -> String {
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
