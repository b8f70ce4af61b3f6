//! Reminders of a monitor that waits without news: what it waits for, and what the user may do.
//!
//! Pure: the time and the reason of the wait are arguments.

use super::line::Output;
use crate::output::time::show_duration;

/// Time without news until the first reminder: longer than a usual start of a task, and short enough that a
/// first job that fits on no node is explained before its user gives up.
const FIRST_NS: u64 = 10_000_000_000;
/// Longest time between two reminders: a log of a pipeline that waits an hour has some 15 lines.
const LONGEST_NS: u64 = 300_000_000_000;

/// The wait since the last news.
#[derive(Debug, Default)]
pub(super) struct Reminder {
    /// Unix nanoseconds of the first look since the last news.
    since_ns: Option<u64>,
    /// Time between the last reminder, or the news, and the next one; 0: none yet.
    interval_ns: u64,
    /// Time of the next reminder.
    due_ns: u64,
}

impl Reminder {
    /// Records one look at `now_ns`: with news, or at something that still waits for `reason`. Returns a
    /// reminder when it is due; the time between two of them doubles.
    pub(super) fn step(
        &mut self,
        now_ns: u64,
        has_news: bool,
        reason: Option<String>,
    ) -> Option<Output> {
        let Some(since_ns) = self.since_ns.filter(|_| !has_news) else {
            self.since_ns = Some(now_ns);
            self.interval_ns = FIRST_NS;
            self.due_ns = now_ns.saturating_add(FIRST_NS);
            return None;
        };
        let reason = reason.filter(|_| now_ns >= self.due_ns)?;
        self.interval_ns = (self.interval_ns * 2).min(LONGEST_NS);
        self.due_ns = now_ns.saturating_add(self.interval_ns);
        let waited = show_duration(now_ns.saturating_sub(since_ns) / 1_000_000_000);
        Some(Output::Detail(format!(
            "Still waiting, without news for {waited}: {reason}. Ctrl-C stops watching and changes \
             nothing, as does -detach from the start"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::colour::Colour;

    const SECOND: u64 = 1_000_000_000;

    fn reason() -> Option<String> {
        Some("it waits".to_owned())
    }

    /// Returns the seconds at which a monitor reminds that looks each second.
    fn reminders(until: u64, news_at: &[u64]) -> Vec<u64> {
        let mut reminder = Reminder::default();
        let look = |second: u64| {
            let has_news = news_at.contains(&second);
            reminder
                .step(second * SECOND, has_news, reason())
                .map(|_| second)
        };
        (0..=until).filter_map(look).collect()
    }

    #[test]
    fn reminders_become_rarer_up_to_a_limit() {
        let seconds = reminders(1_100, &[0]);
        assert_eq!(seconds, [10, 30, 70, 150, 310, 610, 910]);
    }

    #[test]
    fn news_start_the_wait_again() {
        assert_eq!(reminders(60, &[0, 5, 45]), [15, 35, 55]);
    }

    #[test]
    fn a_reminder_says_for_how_long_and_why_and_needs_a_reason() {
        let mut reminder = Reminder::default();
        assert_eq!(reminder.step(0, true, reason()), None);
        assert_eq!(reminder.step(40 * SECOND, false, None), None);
        let output = reminder.step(95 * SECOND, false, reason()).unwrap();
        assert_eq!(
            output.line("T", Colour::Off).unwrap().trim_start(),
            "T: Still waiting, without news for 1m35s: it waits. Ctrl-C stops watching and changes \
             nothing, as does -detach from the start"
        );
    }
}
