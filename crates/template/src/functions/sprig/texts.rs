//! Sprig's texts.

use std::collections::BTreeMap;

use data_encoding::BASE32;

use super::super::text::{
    indent, parts, regex_places, regex_replace, replace, title, trim_letters,
};
use crate::budget::Budget;
use crate::format::printf;
use crate::function::length;
use crate::function::{Call, Code, Failure, Function, exact, many};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    exact("sprig_hello", 0, |_| Ok("Hello!".into())),
    exact("sprig_upper", 1, |call| {
        Ok(call.text(0)?.to_uppercase().into())
    }),
    exact("sprig_lower", 1, |call| {
        Ok(call.text(0)?.to_lowercase().into())
    }),
    exact("sprig_title", 1, |call| Ok(title(&call.text(0)?).into())),
    exact("sprig_untitle", 1, |call| {
        Ok(words(&call.text(0)?, |first| first.to_lowercase().collect()).into())
    }),
    exact("sprig_swapcase", 1, |call| {
        let swap = |letter: char| {
            if letter.is_uppercase() {
                letter.to_lowercase().collect::<String>()
            } else {
                letter.to_uppercase().collect()
            }
        };
        Ok(call.text(0)?.chars().map(swap).collect::<String>().into())
    }),
    exact("sprig_trim", 1, |call| Ok(call.text(0)?.trim().into())),
    exact("sprig_trimAll", 2, trim_all),
    exact("sprig_trimall", 2, trim_all),
    exact("sprig_trimPrefix", 2, |call| {
        let text = call.text(1)?;
        Ok(text.strip_prefix(&*call.text(0)?).unwrap_or(&text).into())
    }),
    exact("sprig_trimSuffix", 2, |call| {
        let text = call.text(1)?;
        Ok(text.strip_suffix(&*call.text(0)?).unwrap_or(&text).into())
    }),
    exact("sprig_nospace", 1, |call| {
        Ok(call
            .text(0)?
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .collect::<String>()
            .into())
    }),
    exact("sprig_initials", 1, |call| {
        Ok(call
            .text(0)?
            .split_whitespace()
            .filter_map(|word| word.chars().next())
            .collect::<String>()
            .into())
    }),
    exact("sprig_trunc", 2, |call| {
        let (count, text) = (call.int(0)?, call.text(1)?);
        let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
        Ok(if count < 0 {
            cut(&text, (length + count).max(0), length)
        } else {
            cut(&text, 0, count.min(length))
        })
    }),
    exact("sprig_substr", 3, |call| {
        let (start, end, text) = (call.int(0)?, call.int(1)?, call.text(2)?);
        let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
        Ok(cut(
            &text,
            start.clamp(0, length),
            if end < 0 || end > length { length } else { end },
        ))
    }),
    exact("sprig_abbrev", 2, |call| {
        let (width, text) = (call.size(0)?, call.text(1)?);
        if width < 4 || text.chars().count() <= width {
            return Ok(text.as_ref().into());
        }
        Ok(format!("{}...", text.chars().take(width - 3).collect::<String>()).into())
    }),
    exact("sprig_repeat", 2, |call| {
        let (count, text) = (call.size(0)?, call.text(1)?);
        Budget::room_for(count, text.len())?;
        Ok(text.repeat(count).into())
    }),
    exact("sprig_replace", 3, |call| {
        replace(&call.text(0)?, &call.text(1)?, &call.text(2)?)
    }),
    exact("sprig_contains", 2, |call| {
        Ok(Value::Bool(call.text(1)?.contains(&*call.text(0)?)))
    }),
    exact("sprig_hasPrefix", 2, |call| {
        Ok(Value::Bool(call.text(1)?.starts_with(&*call.text(0)?)))
    }),
    exact("sprig_hasSuffix", 2, |call| {
        Ok(Value::Bool(call.text(1)?.ends_with(&*call.text(0)?)))
    }),
    many("sprig_quote", 0, |call| {
        Ok(each(call, |text| printf::quoted(text, false)).into())
    }),
    many("sprig_squote", 0, |call| {
        Ok(each(call, |text| format!("'{text}'")).into())
    }),
    many("sprig_cat", 0, |call| Ok(each(call, str::to_owned).into())),
    exact("sprig_indent", 2, |call| {
        Ok(indent(call.size(0)?, &call.text(1)?)?.into())
    }),
    exact("sprig_nindent", 2, |call| {
        Ok(format!("\n{}", indent(call.size(0)?, &call.text(1)?)?).into())
    }),
    exact("sprig_wrap", 2, |call| {
        Ok(wrap(call.size(0)?, "\n", &call.text(1)?)?.into())
    }),
    exact("sprig_wrapWith", 3, |call| {
        Ok(wrap(call.size(0)?, &call.text(1)?, &call.text(2)?)?.into())
    }),
    exact("sprig_plural", 3, |call| {
        Ok(call.value(usize::from(call.int(2)? != 1)).clone())
    }),
    exact("sprig_snakecase", 1, |call| {
        Ok(split_words(&call.text(0)?).join("_").into())
    }),
    exact("sprig_kebabcase", 1, |call| {
        Ok(split_words(&call.text(0)?).join("-").into())
    }),
    exact(
        "sprig_camelcase",
        1,
        |call| Ok(camel(&call.text(0)?).into()),
    ),
    exact("sprig_splitList", 2, |call| {
        Ok(parts(&call.text(0)?, &call.text(1)?)?)
    }),
    exact("sprig_split", 2, |call| {
        numbered(call.text(1)?.split(&*call.text(0)?))
    }),
    exact("sprig_splitn", 3, |call| {
        numbered(call.text(2)?.splitn(call.size(1)?, &*call.text(0)?))
    }),
    exact("sprig_b32enc", 1, |call| {
        Ok(BASE32.encode(call.text(0)?.as_bytes()).into())
    }),
    exact("sprig_b32dec", 1, |call| {
        let bytes = BASE32
            .decode(call.text(0)?.as_bytes())
            .map_err(|error| format!("not base32: {error}"))?;
        Ok(String::from_utf8(bytes)
            .map_err(|_| "the decoded bytes are not a text in UTF-8")?
            .into())
    }),
    exact("sprig_regexMatch", 2, REGEX_MATCH),
    exact("sprig_mustRegexMatch", 2, REGEX_MATCH),
    exact("sprig_regexFind", 2, REGEX_FIND),
    exact("sprig_mustRegexFind", 2, REGEX_FIND),
    exact("sprig_regexFindAll", 3, REGEX_FIND_ALL),
    exact("sprig_mustRegexFindAll", 3, REGEX_FIND_ALL),
    exact("sprig_regexReplaceAll", 3, REGEX_REPLACE),
    exact("sprig_mustRegexReplaceAll", 3, REGEX_REPLACE),
    exact("sprig_regexReplaceAllLiteral", 3, REGEX_REPLACE_LITERAL),
    exact("sprig_mustRegexReplaceAllLiteral", 3, REGEX_REPLACE_LITERAL),
    exact("sprig_regexSplit", 3, REGEX_SPLIT),
    exact("sprig_mustRegexSplit", 3, REGEX_SPLIT),
    exact("sprig_regexQuoteMeta", 1, |call| {
        Ok(regex::escape(&call.text(0)?).into())
    }),
];

const REGEX_MATCH: Code = |call| Ok(Value::Bool(call.pattern(0)?.is_match(&call.text(1)?)));
const REGEX_FIND: Code = |call| {
    let (pattern, text) = (call.pattern(0)?, call.text(1)?);
    let found = pattern.find(&text).map(|found| found.as_str());
    Ok(found.unwrap_or_default().into())
};
const REGEX_FIND_ALL: Code = |call| {
    let (text, most) = (call.text(1)?, call.int(2)?);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let places = regex_places(call, 0, &text, most)?;
    Ok(Value::texts(places.into_iter().map(|place| &text[place]))?)
};
const REGEX_REPLACE: Code = |call| {
    let (text, new) = (call.text(1)?, call.text(2)?);
    regex_replace(call, 0, &new, &text)
};
const REGEX_REPLACE_LITERAL: Code = |call| {
    let (text, new) = (call.text(1)?, call.text(2)?);
    regex_replace(call, 0, &new.replace('$', "$$"), &text)
};
const REGEX_SPLIT: Code = |call| {
    let (text, most) = (call.text(1)?, call.int(2)?);
    if most == 0 {
        return Ok(Value::list(Vec::new())?);
    }
    let most = usize::try_from(most.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut last = 0;
    for place in regex_places(call, 0, &text, most)? {
        parts.push(&text[last..place.start]);
        last = place.end;
    }
    parts.push(&text[last..]);
    Ok(Value::texts(parts)?)
};

fn trim_all(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(trim_letters(&call.text(1)?, &call.text(0)?).into())
}

/// Bytes of the text; a character that is cut in two becomes U+FFFD.
fn cut(text: &str, start: i64, end: i64) -> Value {
    let (start, end) = (
        usize::try_from(start).unwrap_or(0),
        usize::try_from(end).unwrap_or(0),
    );
    String::from_utf8_lossy(text.as_bytes().get(start..end).unwrap_or_default())
        .into_owned()
        .into()
}

/// The arguments that are not nil, each changed, between spaces.
fn each(call: &Call<'_>, change: impl Fn(&str) -> String) -> String {
    let words: Vec<_> = call
        .arguments
        .iter()
        .filter(|value| !value.is_nil())
        .map(|value| change(&value.to_string()))
        .collect();
    words.join(" ")
}

fn words(text: &str, first: impl Fn(char) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut starts = true;
    for letter in text.chars() {
        if starts && letter.is_alphanumeric() {
            out.push_str(&first(letter));
        } else {
            out.push(letter);
        }
        starts = letter.is_whitespace();
    }
    out
}

fn wrap(width: usize, separator: &str, text: &str) -> Result<String, String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    Budget::room_for(lines.len(), separator.len())?;
    Ok(lines.join(separator))
}

/// The words of an identifier in small letters: `AbCd`, `ab_cd` and `ab-cd` are `ab` and `cd`.
fn split_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let letters: Vec<char> = text.chars().collect();
    let mut starts = true;
    for (position, letter) in letters.iter().enumerate() {
        if matches!(letter, '_' | '-' | ' ') {
            starts = true;
            continue;
        }
        let before = position.checked_sub(1).map(|before| letters[before]);
        let ends_small = before.is_some_and(|before| before.is_lowercase() || before.is_numeric());
        let next_small = letters
            .get(position + 1)
            .is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase()
            && (ends_small || (next_small && before.is_some_and(char::is_uppercase)))
        {
            starts = true;
        }
        if starts || words.is_empty() {
            words.push(String::new());
            starts = false;
        }
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

fn camel(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(['_', '-', ' ']).filter(|word| !word.is_empty()) {
        let mut letters = word.chars();
        out.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        out.extend(letters);
    }
    out
}

/// A map of the parts: `_0`, `_1` and so on.
fn numbered<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Value, Failure> {
    let entries: BTreeMap<_, _> = parts
        .enumerate()
        .map(|(position, part)| (format!("_{}", length(position)).into(), part.into()))
        .collect();
    Ok(Value::map(entries)?)
}
