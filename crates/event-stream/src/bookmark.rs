//! Bookmarks of an event stream: batches without events that show its progress.
//!
//! A bookmark only has progress that the store has confirmed: a dead watch must not look like a store
//! without writes. Pure: times are those since the stream's start.

use std::time::Duration;

/// The time before a bookmark at which the store is asked for its progress.
pub const ASK_AHEAD: Duration = Duration::from_millis(500);
/// The silence of the store after a due bookmark that ends the stream.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// An event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookmarkEvent {
    /// The store sent something: a write, or its progress.
    Heard,
    /// A batch was sent to the caller, a bookmark or one with events.
    Sent,
    /// [`Bookmark::next`] has come.
    Tick,
}

/// The next step of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookmarkAction {
    Wait,
    /// Asks the store for its progress.
    Ask,
    /// Sends a bookmark.
    Send,
    /// Ends the stream: the store has been silent for too long.
    End,
}

/// The next bookmark of one stream.
#[derive(Clone, Debug)]
pub struct Bookmark {
    interval: Duration,
    due: Duration,
    /// The time at which the store was last asked.
    asked_at: Option<Duration>,
    /// True if it has answered since.
    is_heard: bool,
}

impl Bookmark {
    /// Starts with a batch that was just sent.
    pub fn new(now: Duration, interval: Duration) -> Self {
        Self {
            interval,
            due: now + interval,
            asked_at: None,
            is_heard: false,
        }
    }

    /// Returns the time of the next [`BookmarkEvent::Tick`]: to ask, or to look for the answer.
    pub fn next(&self) -> Duration {
        match self.asked_at {
            None => self.due.saturating_sub(ASK_AHEAD),
            Some(asked_at) => self.due.max(asked_at + ASK_AHEAD),
        }
    }

    pub fn step(&mut self, now: Duration, event: BookmarkEvent) -> BookmarkAction {
        match event {
            BookmarkEvent::Heard => {
                self.is_heard = true;
                BookmarkAction::Wait
            }
            BookmarkEvent::Sent => {
                *self = Self::new(now, self.interval);
                BookmarkAction::Wait
            }
            BookmarkEvent::Tick if self.asked_at.is_some() && self.is_heard => BookmarkAction::Send,
            BookmarkEvent::Tick if now > self.due + SILENCE_MAX => BookmarkAction::End,
            BookmarkEvent::Tick => {
                self.asked_at = Some(now);
                self.is_heard = false;
                BookmarkAction::Ask
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BookmarkAction::{Ask, End, Send, Wait};
    use super::BookmarkEvent::{Heard, Sent, Tick};
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Plays events at times in milliseconds on a stream with an interval of 10 s, and returns the
    /// actions with the next tick after each.
    fn play(events: &[(u64, BookmarkEvent)]) -> Vec<(BookmarkAction, Duration)> {
        let mut bookmark = Bookmark::new(ms(0), ms(10_000));
        let mut step = |(now, event): &(u64, BookmarkEvent)| {
            let action = bookmark.step(ms(*now), *event);
            (action, bookmark.next())
        };
        events.iter().map(&mut step).collect()
    }

    #[test]
    fn a_bookmark_is_sent_once_the_store_has_confirmed_its_progress() {
        let found = play(&[
            (9_500, Tick),
            (9_510, Heard),
            (10_000, Tick),
            (10_001, Sent),
        ]);
        let expected = [
            (Ask, ms(10_000)),
            (Wait, ms(10_000)),
            (Send, ms(10_000)),
            (Wait, ms(19_501)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn progress_from_before_the_question_confirms_nothing() {
        let found = play(&[(9_000, Heard), (9_500, Tick), (10_000, Tick)]);
        assert_eq!(found[1..], [(Ask, ms(10_000)), (Ask, ms(10_500))]);
    }

    #[test]
    fn events_put_the_bookmark_off() {
        let found = play(&[(9_000, Heard), (9_001, Sent)]);
        assert_eq!(found[1], (Wait, ms(18_501)));
    }

    #[test]
    fn a_silent_store_is_asked_again_and_ends_the_stream_in_the_end() {
        let mut bookmark = Bookmark::new(ms(0), ms(10_000));
        let mut asked = 0;
        let ended = loop {
            let now = bookmark.next();
            match bookmark.step(now, Tick) {
                Ask => asked += 1,
                End => break now,
                action => panic!("{action:?}"),
            }
        };
        assert_eq!((asked, ended), (12, ms(15_500)));
    }
}
