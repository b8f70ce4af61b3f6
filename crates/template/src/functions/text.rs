//! Functions of texts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::budget::Budget;
use crate::function::{Call, Failure, Function, exact};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    exact("split", 2, |call| {
        let text = call.text(1)?;
        // An empty text has no parts, not one empty part.
        let text = text.trim();
        if text.is_empty() {
            return Ok(Value::list(Vec::new())?);
        }
        Ok(parts(&call.text(0)?, text)?)
    }),
    exact("splitToMap", 3, |call| {
        let (between, inside, text) = (call.text(0)?, call.text(1)?, call.text(2)?);
        let mut entries = BTreeMap::new();
        for pair in text
            .split(&*between)
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
        {
            let (key, value) = pair.split_once(&*inside).unwrap_or((pair, ""));
            entries.insert(key.trim().into(), value.trim().into());
        }
        Ok(Value::map(entries)?)
    }),
    exact("join", 2, |call| join(call, 0, 1)),
    exact("replaceAll", 3, |call| {
        replace(&call.text(0)?, &call.text(1)?, &call.text(2)?)
    }),
    exact("regexMatch", 2, |call| {
        Ok(Value::Bool(call.pattern(0)?.is_match(&call.text(1)?)))
    }),
    exact("regexReplaceAll", 3, |call| {
        let (new, text) = (call.text(1)?, call.text(2)?);
        regex_replace(call, 0, &new, &text)
    }),
    exact("toLower", 1, |call| Ok(call.text(0)?.to_lowercase().into())),
    exact("toUpper", 1, |call| Ok(call.text(0)?.to_uppercase().into())),
    exact("toTitle", 1, |call| Ok(title(&call.text(0)?).into())),
    exact("trim", 2, |call| {
        Ok(trim_letters(&call.text(1)?, &call.text(0)?).into())
    }),
    exact("trimPrefix", 2, |call| {
        let (prefix, text) = (call.text(0)?, call.text(1)?);
        Ok(text.strip_prefix(&*prefix).unwrap_or(&text).into())
    }),
    exact("trimSuffix", 2, |call| {
        let (suffix, text) = (call.text(0)?, call.text(1)?);
        Ok(text.strip_suffix(&*suffix).unwrap_or(&text).into())
    }),
    exact("trimSpace", 1, |call| Ok(call.text(0)?.trim().into())),
    exact("indent", 2, |call| {
        let (spaces, text) = (call.size(0)?, call.text(1)?);
        Ok(indent(spaces, &text)?.into())
    }),
];

/// The parts of `text` between separators; an empty separator splits into characters.
pub(super) fn parts(separator: &str, text: &str) -> Result<Value, String> {
    // A list element takes some 16 bytes.
    Budget::room_for(text.len(), 16)?;
    if separator.is_empty() {
        return Value::texts(text.chars().map(|letter| letter.to_string()));
    }
    Value::texts(text.split(separator))
}

pub(super) fn join(call: &mut Call<'_>, separator: usize, list: usize) -> Result<Value, Failure> {
    let separator = call.text(separator)?;
    let words = call.printed_list(list)?;
    Budget::room_for(words.len(), separator.len())?;
    Ok(words.join(&separator).into())
}

pub(super) fn replace(old: &str, new: &str, text: &str) -> Result<Value, Failure> {
    let count = if old.is_empty() {
        text.len() + 1
    } else {
        text.matches(old).count()
    };
    Budget::room(count.saturating_mul(new.len()).saturating_add(text.len()))?;
    Ok(text.replace(old, new).into())
}

/// Replaces all matches of the regular expression at `pattern`; `new` refers to groups as `$1` and `${name}`.
pub(super) fn regex_replace(
    call: &mut Call<'_>,
    pattern: usize,
    new: &str,
    text: &str,
) -> Result<Value, Failure> {
    let pattern = call.pattern(pattern)?;
    let mut out = String::new();
    let mut last = 0;
    for captures in pattern.captures_iter(text) {
        let Some(found) = captures.get(0) else {
            continue;
        };
        call.pay_for_search(text.len() - last)?;
        out.push_str(&text[last..found.start()]);
        captures.expand(new, &mut out);
        last = found.end();
        Budget::room(out.len())?;
    }
    out.push_str(&text[last..]);
    Ok(out.into())
}

/// The places of at most `most` matches.
pub(super) fn regex_places(
    call: &mut Call<'_>,
    pattern: usize,
    text: &str,
    most: usize,
) -> Result<Vec<Range<usize>>, Failure> {
    let pattern = call.pattern(pattern)?;
    let mut places = Vec::new();
    for found in pattern.find_iter(text).take(most) {
        call.pay_for_search(text.len() - found.start())?;
        places.push(found.range());
        Budget::room_for(places.len(), 16)?;
    }
    Ok(places)
}

/// The text without the characters of `letters` at both ends.
pub(super) fn trim_letters<'a>(text: &'a str, letters: &str) -> &'a str {
    let letters: BTreeSet<char> = letters.chars().collect();
    text.trim_matches(|letter| letters.contains(&letter))
}

/// Each word with a capital.
pub(super) fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_word = false;
    for letter in text.chars() {
        if in_word {
            out.push(letter);
        } else {
            out.extend(letter.to_uppercase());
        }
        in_word = letter.is_alphanumeric() || matches!(letter, '_' | '\'');
    }
    out
}

/// Each line behind `spaces` spaces.
pub(super) fn indent(spaces: usize, text: &str) -> Result<String, String> {
    let lines = text.split('\n').count();
    Budget::room(lines.saturating_mul(spaces).saturating_add(text.len()))?;
    let padding = " ".repeat(spaces);
    Ok(text
        .split('\n')
        .map(|line| format!("{padding}{line}"))
        .collect::<Vec<_>>()
        .join("\n"))
}
