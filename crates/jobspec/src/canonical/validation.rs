//! Validation of a job: the collector of errors and warnings, field paths, numbers and durations in range.

use std::fmt::Display;
use std::time::Duration;

use model::FieldErrors;
use prost_types::Struct;
use serde_json::{Map, Value};

/// Errors, and warnings, kept: more than a user reads at once, few enough for one response.
const MAX_KEPT: usize = 100;

/// The largest number of regular expressions in a job: each takes up to some milliseconds to
/// compile, here and again where nodes are compared.
const MAX_REGEXPS: usize = 100;

/// No duration of a job is meant to be shorter, 1 ms: a number without a unit, which is nanoseconds,
/// was meant to be something else.
const SHORTEST_MEANT_NS: i64 = 1_000_000;
/// The largest number that is taken for seconds in that case: a day's.
const LONGEST_SECONDS: i64 = 86_400;

/// The errors and warnings found so far.
#[derive(Default)]
pub(super) struct Validation {
    errors: FieldErrors,
    warnings: Vec<String>,
    /// The number of errors beyond those kept.
    dropped: usize,
    regexps: usize,
}

/// The place of a value within a job, as in `group["web"].task["server"]`; empty for the job.
#[derive(Clone)]
pub(super) struct Path(String);

impl Path {
    pub(super) fn root() -> Self {
        Self(String::new())
    }

    pub(super) fn field(&self, name: &str) -> String {
        if self.0.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.0)
        }
    }

    pub(super) fn block(&self, name: &str) -> Self {
        Self(self.field(name))
    }

    /// A block by its label, or by its position when the label is missing.
    pub(super) fn labelled(&self, name: &str, label: Option<&str>, position: usize) -> Self {
        match label {
            Some(label) => Self(format!("{}[{label:?}]", self.field(name))),
            None => self.at(name, position),
        }
    }

    pub(super) fn at(&self, name: &str, position: usize) -> Self {
        Self(format!("{}[{position}]", self.field(name)))
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Validation {
    pub(super) fn error(&mut self, field: impl Display, message: impl Into<String>) {
        if self.errors.0.len() < MAX_KEPT {
            self.errors.push(field.to_string(), message);
        } else {
            self.dropped += 1;
        }
    }

    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        if self.warnings.len() < MAX_KEPT {
            self.warnings.push(warning.into());
        }
    }

    /// Returns how many errors there are, to see whether a step adds some.
    pub(super) fn error_count(&self) -> usize {
        self.errors.0.len() + self.dropped
    }

    /// Tells whether one more regular expression may be compiled.
    pub(super) fn may_compile(&mut self, field: &str) -> bool {
        self.regexps += 1;
        if self.regexps == MAX_REGEXPS + 1 {
            let message = format!(
                "a job may have {MAX_REGEXPS} regular expressions: join some with |, or compare \
                 with =",
            );
            self.error(field, message);
        }
        self.regexps <= MAX_REGEXPS
    }

    /// Returns errors and warnings.
    pub(super) fn finish(mut self) -> (FieldErrors, Vec<String>) {
        if self.dropped > 0
            && let Some(last) = self.errors.0.last_mut()
        {
            last.message
                .push_str(&format!(" (and {} more errors)", self.dropped));
        }
        (self.errors, self.warnings)
    }

    /// Returns the number as the model holds it; out of range it is an error and `default`.
    pub(super) fn number<T>(&mut self, field: String, value: Option<i64>, default: T) -> T
    where
        T: TryFrom<i64> + Bounded,
    {
        self.number_from(0, field, value, default)
    }

    /// The same for a number that has to be at least `least`. The caller checks that; here `least`
    /// only stands in the message about a number that the model cannot hold.
    pub(super) fn number_from<T>(
        &mut self,
        least: u32,
        field: String,
        value: Option<i64>,
        default: T,
    ) -> T
    where
        T: TryFrom<i64> + Bounded,
    {
        let Some(value) = value else { return default };
        T::try_from(value).unwrap_or_else(|_| {
            let way = if value < 0 { "raise" } else { "lower" };
            let message = format!(
                "must be between {least} and {}; got {value}: {way} it",
                T::LARGEST
            );
            self.error(field, message);
            default
        })
    }

    /// Returns the duration; a negative or unreadable one is an error and `default`.
    pub(super) fn duration(
        &mut self,
        field: String,
        value: Option<&prost_types::Duration>,
        default: Duration,
    ) -> Duration {
        self.signed_duration(
            field,
            value,
            "must not be negative: write a duration such as \"30s\"",
        )
        .unwrap_or(default)
    }

    /// Returns the duration, or `None` when it is absent; what is wrong with it is an error.
    ///
    /// `when_negative` is the message for a negative one.
    pub(super) fn signed_duration(
        &mut self,
        field: String,
        value: Option<&prost_types::Duration>,
        when_negative: &str,
    ) -> Option<Duration> {
        let nanoseconds = match job_fields::nanoseconds(value?) {
            Ok(nanoseconds) => nanoseconds,
            Err(invalid) => {
                self.error(field, format!("Unsuitable duration value; {invalid}"));
                return None;
            }
        };
        if (1..SHORTEST_MEANT_NS).contains(&nanoseconds) {
            // Of a small number it is the seconds that were meant.
            let seconds = if nanoseconds <= LONGEST_SECONDS {
                nanoseconds
            } else {
                30
            };
            self.warn(format!(
                "{field}: {nanoseconds} is {nanoseconds} nanoseconds: write a duration with its \
                 unit, as in \"{seconds}s\""
            ));
        }
        if let Ok(nanoseconds) = u64::try_from(nanoseconds) {
            Some(Duration::from_nanos(nanoseconds))
        } else {
            self.error(field, when_negative);
            None
        }
    }

    /// Returns free-form values; ones that JSON does not have are an error and nothing.
    pub(super) fn object(&mut self, field: String, value: Option<&Struct>) -> Map<String, Value> {
        let object = value.map(job_fields::read_object).transpose();
        object
            .map(Option::unwrap_or_default)
            .unwrap_or_else(|error| {
                self.error(format!("{field}.{}", error.field), error.message);
                Map::new()
            })
    }

    /// Returns the choice named by `text`; another word is an error, listed with the right ones.
    pub(super) fn choice<T: Copy>(
        &mut self,
        field: String,
        text: Option<&str>,
        choices: &[(&str, T)],
        default: T,
        message: impl FnOnce(&str) -> String,
    ) -> T {
        let Some(text) = text else { return default };
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return *choice;
        }
        self.error(field, message(text));
        default
    }
}

/// Integers of the model, with their upper bound for messages.
pub(super) trait Bounded {
    const LARGEST: u64;
}

impl Bounded for u32 {
    const LARGEST: u64 = u32::MAX as u64;
}

impl Bounded for u64 {
    const LARGEST: u64 = i64::MAX.unsigned_abs();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_that_is_no_millisecond_is_remarked_on() {
        let warnings = |nanoseconds| {
            let mut check = Validation::default();
            let value = job_fields::duration(nanoseconds);
            let read = check.duration("kill_timeout".to_owned(), Some(&value), Duration::ZERO);
            assert_eq!(read, Duration::from_nanos(nanoseconds.unsigned_abs()));
            let (errors, warnings) = check.finish();
            assert!(errors.0.is_empty());
            warnings
        };
        for meant in [0, 1_000_000, 30_000_000_000] {
            assert!(warnings(meant).is_empty(), "{meant}");
        }
        assert_eq!(
            warnings(30),
            ["kill_timeout: 30 is 30 nanoseconds: write a duration with its unit, as in \"30s\""]
        );
        assert!(warnings(999_999)[0].contains("999999 nanoseconds"));
        assert!(!warnings(999_999)[0].contains("999999s"));
    }
}
