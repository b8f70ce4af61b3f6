//! Quiet hours of each day, in UTC.

use std::str::FromStr;

use model::Timestamp;

const MINUTES_A_DAY: u64 = 24 * 60;

/// A daily period in UTC, as in `02:00-04:30`; it may pass midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    /// Minutes after midnight.
    from: u64,
    to: u64,
}

/// The text is not a period of a day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a period of a day: want two different times in UTC, as in 02:00-04:30")]
pub struct NoPeriod(String);

impl FromStr for QuietHours {
    type Err = NoPeriod;

    fn from_str(text: &str) -> Result<Self, NoPeriod> {
        let bad = || NoPeriod(text.to_owned());
        let (from, to) = text.split_once('-').ok_or_else(bad)?;
        let from = minutes(from.trim()).ok_or_else(bad)?;
        let to = minutes(to.trim()).ok_or_else(bad)?;
        if from == to {
            return Err(bad());
        }
        Ok(Self { from, to })
    }
}

fn minutes(text: &str) -> Option<u64> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute): (u64, u64) = (hour.parse().ok()?, minute.parse().ok()?);
    (hour < 24 && minute < 60).then_some(hour * 60 + minute)
}

impl QuietHours {
    /// Tells whether `at` is in the period; its end is not.
    pub fn contains(self, at: Timestamp) -> bool {
        let minute = at.as_secs() / 60 % MINUTES_A_DAY;
        if self.from < self.to {
            (self.from..self.to).contains(&minute)
        } else {
            minute >= self.from || minute < self.to
        }
    }
}
