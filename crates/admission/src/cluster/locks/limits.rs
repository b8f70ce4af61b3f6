//! Times and id of a lock: defaults and limits.

use std::time::Duration;

use model::{FieldErrors, VariableKey};

/// Source: Nomad's defaults and limits.
const DEFAULT: Duration = Duration::from_secs(15);
const TTL_MIN: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// A UUID has 36 bytes; the rest is for holders that choose another form.
const ID_BYTES_MAX: usize = 64;

/// Times of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub ttl: Duration,
    pub delay: Duration,
}

impl Times {
    /// Returns the times of a request; `None`: the default.
    ///
    /// # Errors
    /// All times outside of their limits.
    pub fn new(ttl: Option<Duration>, delay: Option<Duration>) -> Result<Self, FieldErrors> {
        let times = Self {
            ttl: ttl.unwrap_or(DEFAULT),
            delay: delay.unwrap_or(DEFAULT),
        };
        let mut errors = FieldErrors::default();
        if !(TTL_MIN..=LONGEST).contains(&times.ttl) {
            // Source: Nomad's text.
            let problem =
                "TTL must be between 10 seconds and 24 hours: leave it out for 15 seconds";
            errors.push("ttl", problem);
        }
        if times.delay > LONGEST {
            errors.push(
                "delay",
                "must be at most 24 hours: leave it out for 15 seconds",
            );
        }
        errors.into_result(times)
    }
}

/// A request to acquire a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireRequest {
    pub variable: VariableKey,
    /// Unique for this acquisition.
    pub lock_id: String,
    pub times: Times,
}

/// Checks the id of a lock.
///
/// # Errors
/// It is empty or too long.
pub fn check_id(lock_id: &str) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    if lock_id.is_empty() {
        errors.push("lock_id", "missing: send the id that AcquireLock returned");
    }
    if lock_id.len() > ID_BYTES_MAX {
        let problem = format!("has {} bytes: want at most {ID_BYTES_MAX}", lock_id.len());
        errors.push("lock_id", problem);
    }
    errors.into_result(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_defaults_and_limits() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let day = 24 * 60 * 60;
        for (ttl, delay, wrong) in [
            (None, None, ""),
            (seconds(10), seconds(0), ""),
            (seconds(day), seconds(day), ""),
            (seconds(9), None, "ttl"),
            (seconds(day + 1), None, "ttl"),
            (None, seconds(day + 1), "delay"),
        ] {
            let found = Times::new(ttl, delay).err().unwrap_or_default().0;
            let fields: Vec<_> = found.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields.join(","), wrong, "{ttl:?} {delay:?}");
        }
        let Times { ttl, delay } = Times::new(None, None).unwrap();
        assert_eq!((ttl, delay), (DEFAULT, DEFAULT));
    }

    #[test]
    fn an_id_is_short_and_not_empty() {
        for (length, valid) in [(0, false), (1, true), (64, true), (65, false)] {
            assert_eq!(check_id(&"x".repeat(length)).is_ok(), valid, "{length}");
        }
    }
}
