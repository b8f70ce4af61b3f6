//! Texts: `chomp indent join lower regex_replace replace reverse split strlen strrev substr title
//! trim trimprefix trimspace trimsuffix upper`.

use super::call::Call;
use super::function::Function;
use crate::language::value::Value;
use crate::regexp;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "chomp",
        parameters: "text",
        call: |call| text(call.text(0)?.trim_end_matches(['\n', '\r'])),
    },
    Function {
        name: "indent",
        parameters: "spaces, text",
        call: indent,
    },
    Function {
        name: "join",
        parameters: "separator, list, list…",
        call: join,
    },
    Function {
        name: "lower",
        parameters: "text",
        call: |call| text(&call.text(0)?.to_lowercase()),
    },
    Function {
        name: "regex_replace",
        parameters: "text, pattern, replacement",
        call: regex_replace,
    },
    Function {
        name: "replace",
        parameters: "text, old, new",
        call: replace,
    },
    // Reverses a text, not a list. Source: Nomad.
    Function {
        name: "reverse",
        parameters: "text",
        call: reversed,
    },
    Function {
        name: "split",
        parameters: "separator, text",
        call: split,
    },
    Function {
        name: "strlen",
        parameters: "text",
        call: |call| Ok(Value::from(call.text(0)?.chars().count())),
    },
    Function {
        name: "strrev",
        parameters: "text",
        call: reversed,
    },
    Function {
        name: "substr",
        parameters: "text, offset, length",
        call: substr,
    },
    Function {
        name: "title",
        parameters: "text",
        call: title,
    },
    Function {
        name: "trim",
        parameters: "text, characters",
        call: trim,
    },
    Function {
        name: "trimprefix",
        parameters: "text, prefix",
        call: trimprefix,
    },
    Function {
        name: "trimspace",
        parameters: "text",
        call: |call| text(call.text(0)?.trim()),
    },
    Function {
        name: "trimsuffix",
        parameters: "text, suffix",
        call: trimsuffix,
    },
    Function {
        name: "upper",
        parameters: "text",
        call: |call| text(&call.text(0)?.to_uppercase()),
    },
];

/// Maximum indentation: larger values are swapped arguments.
const MAX_INDENT: i64 = 1_000;

/// Steps charged for compiling an expression, which takes some milliseconds at worst.
const COMPILE_STEPS: u32 = 1_000;

pub(super) fn text(text: &str) -> Result<Value, String> {
    Ok(Value::String(text.to_owned()))
}

fn indent(call: &Call<'_>) -> Result<Value, String> {
    let spaces = call.whole(0)?;
    let spaces = usize::try_from(spaces)
        .ok()
        .filter(|_| spaces <= MAX_INDENT)
        .ok_or_else(|| format!("the number of spaces must be between 0 and {MAX_INDENT}"))?;
    let body = call.text(1)?;
    call.pay(body.len() + body.matches('\n').count() * spaces)?;
    text(&body.replace('\n', &format!("\n{}", " ".repeat(spaces))))
}

fn join(call: &Call<'_>) -> Result<Value, String> {
    let separator = call.text(0)?;
    let mut texts = Vec::new();
    for position in 1..call.arguments.len() {
        texts.extend(call.texts(position)?);
    }
    call.pay(texts.len() * separator.len())?;
    text(&texts.join(&separator))
}

fn split(call: &Call<'_>) -> Result<Value, String> {
    let (separator, body) = (call.text(0)?, call.text(1)?);
    if body.is_empty() {
        return Ok(Value::Array(Vec::new()));
    }
    let parts: Vec<Value> = if separator.is_empty() {
        body.chars().map(|c| Value::from(c.to_string())).collect()
    } else {
        body.split(separator.as_str()).map(Value::from).collect()
    };
    Ok(Value::Array(parts))
}

fn replace(call: &Call<'_>) -> Result<Value, String> {
    let (body, old, new) = (call.text(0)?, call.text(1)?, call.text(2)?);
    call.pay(body.matches(old.as_str()).count() * new.len())?;
    text(&body.replace(&old, &new))
}

fn regex_replace(call: &Call<'_>) -> Result<Value, String> {
    let (body, pattern, replacement) = (call.text(0)?, call.text(1)?, call.text(2)?);
    call.host
        .meter
        .steps(COMPILE_STEPS)
        .map_err(str::to_owned)?;
    let regex = regexp::compile(&pattern).map_err(|_| {
        format!("{pattern:?} is not a valid regular expression: check its brackets and backslashes")
    })?;
    // A replacement may refer to groups, each up to the size of the text.
    let each = replacement.len() + replacement.matches('$').count() * body.len();
    call.pay(regex.find_iter(&body).count() * each)?;
    text(&regex.replace_all(&body, replacement.as_str()))
}

fn reversed(call: &Call<'_>) -> Result<Value, String> {
    if call.value(0).is_array() {
        return Err("it reverses a text, not a list: write a for expression".to_owned());
    }
    Ok(Value::String(call.text(0)?.chars().rev().collect()))
}

/// A negative offset counts from the end; a length of −1 means the rest.
fn substr(call: &Call<'_>) -> Result<Value, String> {
    let chars: Vec<char> = call.text(0)?.chars().collect();
    let count = i64::try_from(chars.len()).unwrap_or(i64::MAX);
    let (offset, length) = (call.whole(1)?, call.whole(2)?);
    let start = if offset < 0 {
        count.saturating_add(offset)
    } else {
        offset
    };
    let start = start.clamp(0, count);
    let end = if length < 0 {
        count
    } else {
        start.saturating_add(length).min(count)
    };
    let range = usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
    Ok(Value::String(chars[range].iter().collect()))
}

fn title(call: &Call<'_>) -> Result<Value, String> {
    let mut titled = String::new();
    let mut starts = true;
    for c in call.text(0)?.chars() {
        if starts {
            titled.extend(c.to_uppercase());
        } else {
            titled.push(c);
        }
        starts = c.is_whitespace();
    }
    text(&titled)
}

fn trim(call: &Call<'_>) -> Result<Value, String> {
    let characters: Vec<char> = call.text(1)?.chars().collect();
    text(call.text(0)?.trim_matches(characters.as_slice()))
}

fn trimprefix(call: &Call<'_>) -> Result<Value, String> {
    let (body, prefix) = (call.text(0)?, call.text(1)?);
    text(body.strip_prefix(prefix.as_str()).unwrap_or(&body))
}

fn trimsuffix(call: &Call<'_>) -> Result<Value, String> {
    let (body, suffix) = (call.text(0)?, call.text(1)?);
    text(body.strip_suffix(suffix.as_str()).unwrap_or(&body))
}
