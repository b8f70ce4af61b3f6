//! Functions of the template language itself: comparisons, logic, `len`, `index`, `slice`, `printf`, escapes.

use std::cmp::Ordering;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::format::printf;
use crate::function::{Call, Failure, Function, between, exact, length, many};
use crate::value::{Value, widen};

pub(super) const FUNCTIONS: &[Function] = &[
    // The evaluator decides these two, because they do not evaluate all arguments.
    many("and", 1, |_| Ok(Value::Nil)),
    many("or", 1, |_| Ok(Value::Nil)),
    exact("not", 1, |call| Ok(Value::Bool(!call.value(0).is_true()))),
    many("eq", 2, |call| {
        for position in 1..call.count() {
            if equal(call.value(0), call.value(position))? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
    exact("ne", 2, |call| {
        Ok(Value::Bool(!equal(call.value(0), call.value(1))?))
    }),
    exact("lt", 2, |call| ordered(call, Ordering::is_lt)),
    exact("le", 2, |call| ordered(call, Ordering::is_le)),
    exact("gt", 2, |call| ordered(call, Ordering::is_gt)),
    exact("ge", 2, |call| ordered(call, Ordering::is_ge)),
    exact("len", 1, |call| match call.value(0) {
        Value::List(list) => Ok(length(list.items.len())),
        value => match (value.as_text(), value.as_map()) {
            (Some(text), _) => Ok(length(text.len())),
            (None, Some(map)) => Ok(length(map.len())),
            _ => Err(call.wrong(0, "a text, list or map")),
        },
    }),
    many("index", 1, |call| {
        let mut value = call.value(0).clone();
        for position in 1..call.count() {
            value = element(&value, call.value(position))?;
        }
        Ok(value)
    }),
    between("slice", 1, 3, slice),
    many("print", 0, |call| Ok(printf::print(&call.arguments).into())),
    many("println", 0, |call| {
        let words: Vec<_> = call.arguments.iter().map(ToString::to_string).collect();
        Ok(format!("{}\n", words.join(" ")).into())
    }),
    many("printf", 1, |call| {
        Ok(printf::printf(&call.text(0)?, &call.arguments[1..])?.into())
    }),
    many("html", 1, |call| Ok(escape_html(&joined(call)).into())),
    many("js", 1, |call| Ok(escape_js(&joined(call)).into())),
    many("urlquery", 1, |call| Ok(escape_query(&joined(call)).into())),
    many("call", 1, |call| Err(call.wrong(0, "a function"))),
];

/// The arguments as one text, as `print` makes it; one that is nil stands for "no value".
fn joined(call: &Call<'_>) -> String {
    match &*call.arguments {
        [value] if value.is_nil() => "<no value>".to_owned(),
        arguments => printf::print(arguments),
    }
}

fn equal(a: &Value, b: &Value) -> Result<bool, Failure> {
    let kind = |value: &Value| match value {
        Value::Nothing | Value::Nil => Some(0),
        Value::Bool(_) => Some(1),
        Value::Int(_) | Value::Uint(_) => Some(2),
        Value::Float(_) => Some(3),
        _ => value.as_text().map(|_| 4),
    };
    match (kind(a), kind(b)) {
        (Some(a_kind), Some(b_kind)) if a_kind == b_kind => Ok(a == b),
        (Some(0), _) | (_, Some(0)) => Ok(false),
        (Some(_), Some(_)) => Err(format!(
            "a value of type {} can't be compared with one of type {}",
            a.type_name(),
            b.type_name()
        )
        .into()),
        (None, _) => Err(format!("values of type {} can't be compared", a.type_name()).into()),
        (_, None) => Err(format!("values of type {} can't be compared", b.type_name()).into()),
    }
}

fn ordered(call: &Call<'_>, accept: fn(Ordering) -> bool) -> Result<Value, Failure> {
    let (a, b) = (call.value(0), call.value(1));
    let order = match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Int(_) | Value::Uint(_), Value::Int(_) | Value::Uint(_)) => {
            Some(wide(a).cmp(&wide(b)))
        }
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        _ => a.as_text().zip(b.as_text()).map(|(a, b)| a.cmp(b)),
    };
    let message = || {
        format!(
            "a value of type {} has no order with one of type {}",
            a.type_name(),
            b.type_name()
        )
    };
    Ok(Value::Bool(accept(order.ok_or_else(message)?)))
}

fn wide(value: &Value) -> i128 {
    match value {
        Value::Int(value) => i128::from(*value),
        Value::Uint(value) => i128::from(*value),
        _ => 0,
    }
}

fn position(index: &Value, length: usize) -> Result<usize, Failure> {
    let index = match index {
        Value::Int(index) => *index,
        Value::Uint(index) => i64::try_from(*index).unwrap_or(i64::MAX),
        _ => {
            return Err(format!(
                "an index is an integer, not a value of type {}",
                index.type_name()
            )
            .into());
        }
    };
    usize::try_from(index)
        .ok()
        .filter(|index| *index < length)
        .ok_or_else(|| format!("the index {index} is out of range: there are {length}").into())
}

fn element(value: &Value, index: &Value) -> Result<Value, Failure> {
    match value {
        Value::List(list) => Ok(list.items[position(index, list.items.len())?].clone()),
        _ => match (value.as_map(), value.as_text()) {
            (Some(map), _) => match index.as_text() {
                Some(key) => Ok(map.get(key).cloned().unwrap_or(Value::Nil)),
                None => Err(
                    format!("a key is a text, not a value of type {}", index.type_name()).into(),
                ),
            },
            (None, Some(text)) => Ok(Value::Int(i64::from(
                text.as_bytes()[position(index, text.len())?],
            ))),
            (None, None) => {
                Err(format!("a value of type {} has no elements", value.type_name()).into())
            }
        },
    }
}

fn slice(call: &mut Call<'_>) -> Result<Value, Failure> {
    let whole = match (call.value(0), call.value(0).as_text()) {
        (Value::List(list), _) => list.items.len(),
        (_, Some(text)) => text.len(),
        _ => return Err(call.wrong(0, "a text or list")),
    };
    let start = if call.count() > 1 { call.size(1)? } else { 0 };
    let end = if call.count() > 2 {
        call.size(2)?
    } else {
        whole
    };
    if start > end || end > whole {
        return Err(format!("{start} to {end} is out of range: there are {whole}").into());
    }
    match (call.value(0), call.value(0).as_text()) {
        (Value::List(list), _) => Ok(Value::list(list.items[start..end].to_vec())?),
        (_, Some(text)) => Ok(Value::text(
            String::from_utf8_lossy(&text.as_bytes()[start..end]).into_owned(),
        )),
        _ => Err(call.wrong(0, "a text or list")),
    }
}

fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            letter => out.push(letter),
        }
    }
    out
}

fn escape_js(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' | '>' | '&' | '=' => out.push_str(&format!("\\u{:04X}", u32::from(letter))),
            letter if letter < ' ' => out.push_str(&format!("\\u{:04X}", u32::from(letter))),
            letter if letter.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out
}

/// The characters that the query of a URL cannot have as they are.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b' ');

fn escape_query(text: &str) -> String {
    let escaped = utf8_percent_encode(text, &RESERVED).to_string();
    escaped.replace(' ', "+")
}

/// Returns whether two numbers are equal, whatever their types.
pub(super) fn same_number(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => widen(*a) == *b,
        _ => a == b,
    }
}
