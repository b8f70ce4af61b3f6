//! Look-up of one object by the start of its id, as users type it.

use std::fmt::Display;

use model::FieldErrors;
use model::refusal::{Kind, Refusal};

/// The minimum length of the start of an id. Source: Nomad's command line.
const MIN_CHARS: usize = 2;
/// The largest number of matches that an ambiguous prefix lists: a screenful.
const MAX_NAMED: usize = 20;

/// The start of a UUID, as bits and a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UuidPrefix {
    bits: u128,
    mask: u128,
}

impl UuidPrefix {
    /// Parses hexadecimal digits, with hyphens anywhere; `None`: not the start of a UUID.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.chars().filter(|c| *c != '-');
        let (mut bits, mut count) = (0_u128, 0_u32);
        for digit in digits {
            count += 1;
            if count > 32 {
                return None;
            }
            bits |= u128::from(digit.to_digit(16)?) << (128 - 4 * count);
        }
        let mask = if count == 0 {
            0
        } else {
            u128::MAX << (128 - 4 * count)
        };
        Some(Self { bits, mask })
    }

    pub fn matches(self, id: uuid::Uuid) -> bool {
        id.as_u128() & self.mask == self.bits
    }

    fn is_whole(self) -> bool {
        self.mask == u128::MAX
    }
}

/// The reason why no object was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error("no {noun} with prefix or id {text:?}")]
    None { noun: &'static str, text: String },
}

impl NotFound {
    pub fn none(noun: &'static str, text: &str) -> Self {
        let text = text.to_owned();
        Self::None { noun, text }
    }

    pub fn invalid(field: &str, message: String) -> Self {
        let mut errors = FieldErrors::default();
        errors.push(field, message);
        Self::Invalid(errors)
    }
}

impl Refusal for NotFound {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::None { .. } => Kind::NotFound,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            Self::None { .. } => None,
        }
    }
}

/// Returns the one id that begins with `text`.
///
/// `exists` looks up a whole id, `all` lists all ids, and `field` is the field of the request.
///
/// # Errors
/// No id or several ids do, or `text` is not the start of an id.
pub fn find<I: Copy + Display>(
    field: &str,
    noun: &'static str,
    text: &str,
    make: impl Fn(uuid::Uuid) -> I,
    exists: impl Fn(I) -> bool,
    all: impl Iterator<Item = (uuid::Uuid, I)>,
) -> Result<I, NotFound> {
    let invalid = |message: String| NotFound::invalid(field, message);
    if text.is_empty() {
        return Err(invalid(format!(
            "missing: want the id of a {noun}, or its first characters"
        )));
    }
    let Some(prefix) = UuidPrefix::parse(text) else {
        return Err(invalid(format!(
            "{text:?} is not the id of a {noun}: want hexadecimal digits, as in \
             8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234 or its first characters"
        )));
    };
    let none = || NotFound::none(noun, text);
    if prefix.is_whole() {
        let id = make(uuid::Uuid::from_u128(prefix.bits));
        return if exists(id) { Ok(id) } else { Err(none()) };
    }
    if text.chars().count() < MIN_CHARS {
        return Err(invalid(format!(
            "{text:?} is too short: want at least two characters"
        )));
    }
    let mut matches: Vec<I> = all
        .filter(|(uuid, _)| prefix.matches(*uuid))
        .map(|(_, id)| id)
        .collect();
    match matches.as_slice() {
        [] => Err(none()),
        [id] => Ok(*id),
        several => {
            let count = several.len();
            matches.truncate(MAX_NAMED);
            let mut names: Vec<String> = matches.iter().map(ToString::to_string).collect();
            names.sort_unstable();
            if count > MAX_NAMED {
                names.push(format!("and {} more", count - MAX_NAMED));
            }
            Err(invalid(format!(
                "{text:?} is the start of {count} {noun}s: {}; type more of it",
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use model::EvalId;

    use super::*;

    const IDS: [&str; 3] = [
        "8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234",
        "8a3f2c1f-0b4d-4a7e-9c5f-6d7e8f901234",
        "17c0ffee-0b4d-4a7e-9c5f-6d7e8f901234",
    ];

    fn look_up(text: &str) -> Result<String, String> {
        let ids = IDS.map(|id| id.parse::<EvalId>().unwrap());
        let all = ids.into_iter().map(|id| (id.0, id));
        let exists = |id| ids.contains(&id);
        find("eval_id", "evaluation", text, EvalId, exists, all)
            .map(|id| id.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_id_or_a_start_that_only_one_has_is_found() {
        for text in [IDS[0], "8a3f2c1e", "8a3f2c1e-0", "8A3F2C1E", "8a3f2c1e0b4d"] {
            assert_eq!(look_up(text).unwrap(), IDS[0], "{text}");
        }
        assert_eq!(look_up("17").unwrap(), IDS[2]);
        assert_eq!(look_up("17c").unwrap(), IDS[2], "an odd number of digits");
    }

    #[test]
    fn a_failed_look_up_says_why() {
        for (text, why) in [
            ("", "missing"),
            ("8", "at least two characters"),
            ("web", "want hexadecimal digits"),
            ("99", "no evaluation with prefix or id \"99\""),
            (
                "17c0ffee-0b4d-4a7e-9c5f-6d7e8f901235",
                "no evaluation with prefix or id",
            ),
            (
                "17c0ffee-0b4d-4a7e-9c5f-6d7e8f9012345",
                "want hexadecimal digits",
            ),
            (
                "8a3f",
                "is the start of 2 evaluations: 8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234, 8a3f2c1f-0b4d",
            ),
        ] {
            let error = look_up(text).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
