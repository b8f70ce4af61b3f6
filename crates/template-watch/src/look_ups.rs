//! The look-ups of a task: which are due, and what their answers change. Pure.
//!
//! Times are since a start that the caller chooses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use backoff::delay_or_asked;
use template::Lookup;
use template::source::Answer;

use crate::fetch::{FetchError, Fetched};

/// Look-ups of one task, at most. Each costs a request every few minutes; templates have a handful.
pub const LOOKUPS_MAX: usize = 1_000;

/// The longest delay between two tries.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// A source that says "at once" is looked at again after this time.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// First and longest delay after a failure.
const DELAYS: (Duration, Duration) = (SHORTEST_INTERVAL, LONGEST_DELAY);

/// All look-ups of a task.
#[derive(Debug, Default)]
pub struct LookUps {
    entries: BTreeMap<Lookup, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// `None`: never fetched.
    answer: Option<Answer>,
    /// The reason of the last failure; `None` after a success.
    problem: Option<String>,
    /// Failures in a row.
    failures: u32,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Due(Duration),
    Fetching {
        /// A refresh came meanwhile: fetch again at once.
        again: bool,
    },
    /// The data does not change.
    Done,
}

/// The effect of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Renderings may change.
    pub data: bool,
    /// The reason of a failure is new or gone.
    pub problem: bool,
}

impl LookUps {
    /// Keeps exactly these look-ups; new ones are due at once.
    ///
    /// # Errors
    /// There are too many; none is added.
    pub fn want(&mut self, now: Duration, lookups: &BTreeSet<Lookup>) -> Result<(), String> {
        if lookups.len() > LOOKUPS_MAX {
            return Err(format!(
                "the task's templates look up {} values: at most {LOOKUPS_MAX} are allowed",
                lookups.len()
            ));
        }
        self.entries.retain(|lookup, _| lookups.contains(lookup));
        for lookup in lookups {
            self.entries.entry(lookup.clone()).or_insert(Entry {
                answer: None,
                problem: None,
                failures: 0,
                phase: Phase::Due(now),
            });
        }
        Ok(())
    }

    /// Makes all look-ups due, those that do not change as well: the way to the data is a new one.
    pub fn refresh(&mut self, now: Duration) {
        for entry in self.entries.values_mut() {
            entry.phase = match entry.phase {
                Phase::Fetching { .. } => Phase::Fetching { again: true },
                _ => Phase::Due(now),
            };
        }
    }

    /// Takes up to `room` due look-ups, to be fetched and answered.
    pub fn take_due(&mut self, now: Duration, room: usize) -> Vec<Lookup> {
        let due = |entry: &Entry| matches!(entry.phase, Phase::Due(at) if at <= now);
        let mut taken = Vec::new();
        for (lookup, entry) in self
            .entries
            .iter_mut()
            .filter(|(_, entry)| due(entry))
            .take(room)
        {
            entry.phase = Phase::Fetching { again: false };
            taken.push(lookup.clone());
        }
        taken
    }

    /// Records an answer. `jitter`: 0 to 1.
    pub fn answered(
        &mut self,
        now: Duration,
        lookup: &Lookup,
        result: Result<Fetched, FetchError>,
        jitter: f64,
    ) -> Effect {
        // The templates may not want it any more.
        let Some(entry) = self.entries.get_mut(lookup) else {
            return Effect::default();
        };
        let again = matches!(entry.phase, Phase::Fetching { again: true });
        let mut effect = Effect::default();
        let next = match result {
            Ok(fetched) => {
                effect.problem = entry.problem.take().is_some();
                entry.failures = 0;
                if let Some(answer) = fetched.answer {
                    effect.data = entry.answer.as_ref() != Some(&answer);
                    entry.answer = Some(answer);
                }
                // Answers of one moment spread out over a tenth of their interval.
                let interval = |again: Duration| again.mul_f64(1.0 - 0.1 * jitter.clamp(0.0, 1.0));
                fetched
                    .again
                    .map(|again| interval(again).max(SHORTEST_INTERVAL))
            }
            Err(error) => {
                effect.problem = entry.problem.as_ref() != Some(&error.message);
                entry.failures = entry.failures.saturating_add(1);
                entry.problem = Some(error.message);
                Some(delay_or_asked(
                    DELAYS,
                    entry.failures,
                    error.retry_after,
                    jitter,
                ))
            }
        };
        entry.phase = match next {
            _ if again => Phase::Due(now),
            Some(after) => Phase::Due(now + after),
            None => Phase::Done,
        };
        effect
    }

    /// When the next look-up is due.
    pub fn next_deadline(&self) -> Option<Duration> {
        let due = self.entries.values().filter_map(|entry| match entry.phase {
            Phase::Due(at) => Some(at),
            Phase::Fetching { .. } | Phase::Done => None,
        });
        due.min()
    }

    /// All answers that there are.
    pub fn answers(&self) -> BTreeMap<Lookup, Answer> {
        let known = self.entries.iter();
        known
            .filter_map(|(lookup, entry)| Some((lookup.clone(), entry.answer.clone()?)))
            .collect()
    }

    /// The look-ups whose last try has failed, with the reason.
    pub fn problems(&self) -> BTreeMap<Lookup, String> {
        let failed = self.entries.iter();
        failed
            .filter_map(|(lookup, entry)| Some((lookup.clone(), entry.problem.clone()?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Lookup {
        Lookup::Secret {
            path: name.to_owned(),
        }
    }

    fn look_ups(names: &[&str]) -> LookUps {
        let mut look_ups = LookUps::default();
        look_ups
            .want(
                Duration::ZERO,
                &names.iter().map(|name| lookup(name)).collect(),
            )
            .unwrap();
        look_ups
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn names(text: &str, again: Option<Duration>) -> Result<Fetched, FetchError> {
        Ok(Fetched {
            answer: Some(Answer::Names(vec![text.to_owned()])),
            again,
        })
    }

    fn failed(message: &str) -> Result<Fetched, FetchError> {
        Err(FetchError::new(message))
    }

    const DATA: Effect = Effect {
        data: true,
        problem: false,
    };
    const PROBLEM: Effect = Effect {
        data: false,
        problem: true,
    };
    const NOTHING: Effect = Effect {
        data: false,
        problem: false,
    };

    #[test]
    fn an_answer_counts_as_a_change_if_it_differs() {
        let mut look_ups = look_ups(&["a"]);
        let a = lookup("a");
        assert_eq!(look_ups.take_due(s(0), 9), std::slice::from_ref(&a));
        assert_eq!(look_ups.take_due(s(0), 9), [], "it is being fetched");
        assert_eq!(
            look_ups.answered(s(1), &a, names("1", Some(s(100))), 0.0),
            DATA
        );
        assert_eq!(look_ups.next_deadline(), Some(s(101)));
        assert_eq!(look_ups.take_due(s(101), 9), std::slice::from_ref(&a));
        assert_eq!(
            look_ups.answered(s(101), &a, names("1", Some(s(100))), 1.0),
            NOTHING
        );
        assert_eq!(
            look_ups.next_deadline(),
            Some(s(191)),
            "the jitter makes it sooner"
        );
        look_ups.take_due(s(191), 9);
        let unchanged = Ok(Fetched {
            answer: None,
            again: Some(s(0)),
        });
        assert_eq!(look_ups.answered(s(191), &a, unchanged, 0.0), NOTHING);
        assert_eq!(look_ups.next_deadline(), Some(s(192)), "never at once");
        look_ups.take_due(s(192), 9);
        assert_eq!(look_ups.answered(s(192), &a, names("2", None), 0.0), DATA);
        assert_eq!(look_ups.next_deadline(), None);
    }

    #[test]
    fn a_failure_keeps_the_answer_and_is_retried_later_and_later() {
        let mut look_ups = look_ups(&["a"]);
        let a = lookup("a");
        look_ups.take_due(s(0), 9);
        look_ups.answered(s(0), &a, names("1", Some(s(10))), 0.0);
        let mut now = s(10);
        let mut delays = Vec::new();
        for _ in 0..8 {
            assert_eq!(look_ups.take_due(now, 9).len(), 1);
            look_ups.answered(now, &a, failed("down"), 0.0);
            let next = look_ups.next_deadline().unwrap();
            delays.push((next - now).as_secs());
            now = next;
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(look_ups.answers().len(), 1);
        assert_eq!(look_ups.problems()[&a], "down");
        look_ups.take_due(now, 9);
        assert_eq!(look_ups.answered(now, &a, failed("down"), 0.0), NOTHING);
        look_ups.take_due(now + s(60), 9);
        assert_eq!(
            look_ups.answered(now + s(60), &a, failed("sealed"), 0.0),
            PROBLEM
        );
        look_ups.take_due(now + s(120), 9);
        assert_eq!(
            look_ups.answered(now + s(120), &a, names("1", None), 0.0),
            PROBLEM
        );
        assert!(look_ups.problems().is_empty());
    }

    #[test]
    fn a_source_may_ask_for_a_longer_delay() {
        assert_eq!(delay_or_asked(DELAYS, 1, Some(s(7)), 0.0), s(7));
        assert_eq!(delay_or_asked(DELAYS, 1, Some(s(7_000)), 0.0), s(60));
        assert_eq!(delay_or_asked(DELAYS, 3, None, 1.0), s(2));
    }

    #[test]
    fn few_are_fetched_at_a_time() {
        let mut look_ups = look_ups(&["a", "b", "c"]);
        assert_eq!(look_ups.take_due(s(0), 2).len(), 2);
        assert_eq!(look_ups.take_due(s(0), 2).len(), 1);
    }

    #[test]
    fn look_ups_that_no_template_wants_are_dropped() {
        let mut look_ups = look_ups(&["a", "b"]);
        look_ups.take_due(s(0), 9);
        look_ups
            .want(s(1), &BTreeSet::from([lookup("b"), lookup("c")]))
            .unwrap();
        assert_eq!(
            look_ups.answered(s(1), &lookup("a"), names("1", None), 0.0),
            NOTHING
        );
        assert_eq!(
            look_ups.answered(s(1), &lookup("b"), names("1", None), 0.0),
            DATA
        );
        assert_eq!(look_ups.take_due(s(1), 9), [lookup("c")]);
        let many = (0..=LOOKUPS_MAX)
            .map(|number| lookup(&number.to_string()))
            .collect();
        assert!(
            look_ups
                .want(s(1), &many)
                .unwrap_err()
                .contains("at most 1000")
        );
    }

    #[test]
    fn a_refresh_fetches_all_again_also_those_on_their_way() {
        let mut look_ups = look_ups(&["a", "b"]);
        let (a, b) = (lookup("a"), lookup("b"));
        look_ups.take_due(s(0), 1);
        look_ups.answered(s(0), &a, names("1", None), 0.0);
        look_ups.take_due(s(0), 1);
        look_ups.refresh(s(5));
        assert_eq!(look_ups.take_due(s(5), 9), [a]);
        look_ups.answered(s(6), &b, names("1", None), 0.0);
        assert_eq!(
            look_ups.take_due(s(6), 9),
            [b],
            "the answer came by the old way"
        );
    }
}
