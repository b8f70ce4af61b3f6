//! Day fields of an expression: days of the month, and days of the week.

use jiff::civil::{Date, Weekday};

/// One part of the day-of-month field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MonthDay {
    /// `15`
    Day(i8),
    /// `L`: the last of the month.
    Last,
    /// `LW`: the last Monday to Friday of the month.
    LastWorkday,
    /// `15W`: the Monday to Friday nearest to the 15th, in the same month.
    Workday(i8),
}

/// One part of the day-of-week field; 0 is Sunday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WeekDay {
    Day(i8),
    /// `5L`: the last Friday of the month.
    Last(i8),
    /// `6#3`: the third Saturday of the month.
    Nth(i8, i8),
}

impl MonthDay {
    fn matches(self, date: Date) -> bool {
        match self {
            Self::Day(day) => date.day() == day,
            Self::Last => date.day() == date.days_in_month(),
            Self::LastWorkday => date.day() == nearest_workday(date, date.days_in_month()),
            Self::Workday(day) => {
                day <= date.days_in_month() && date.day() == nearest_workday(date, day)
            }
        }
    }
}

impl WeekDay {
    fn matches(self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        match self {
            Self::Day(day) => weekday == day,
            Self::Last(day) => weekday == day && date.day() + 7 > date.days_in_month(),
            Self::Nth(day, nth) => weekday == day && (date.day() - 1) / 7 + 1 == nth,
        }
    }
}

/// Returns the Monday to Friday nearest to `day` of the month of `date`, without leaving it.
fn nearest_workday(date: Date, day: i8) -> i8 {
    let target = date.first_of_month().with().day(day).build();
    let Ok(target) = target else { return day };
    match target.weekday() {
        Weekday::Saturday if day == 1 => 3,
        Weekday::Saturday => day - 1,
        Weekday::Sunday if day == date.days_in_month() => day - 2,
        Weekday::Sunday => day + 1,
        _ => day,
    }
}

/// The days that an expression means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Days {
    /// Empty: not restricted.
    pub(crate) of_month: Vec<MonthDay>,
    /// Empty: not restricted.
    pub(crate) of_week: Vec<WeekDay>,
}

impl Days {
    pub(crate) fn matches(&self, date: Date) -> bool {
        let by_month = || self.of_month.iter().any(|day| day.matches(date));
        let by_week = || self.of_week.iter().any(|day| day.matches(date));
        match (self.of_month.is_empty(), self.of_week.is_empty()) {
            (true, true) => true,
            (false, true) => by_month(),
            (true, false) => by_week(),
            (false, false) => by_month() || by_week(),
        }
    }
}
