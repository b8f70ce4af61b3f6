//! The names that a node asks for, and their newest answers. Pure.
//!
//! Times are since a start that the caller chooses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::ServiceHealth;

/// Names of one subscription. A gateway compares all of them at each change.
pub const NAMES_MAX: usize = 1_000;
/// A name stays in the subscription for this long after the last question. Programs that keep a
/// connection resolve its name again after minutes.
const KEPT: Duration = Duration::from_secs(600);
/// As [`KEPT`], for names without an instance, which may be typing errors.
const KEPT_EMPTY: Duration = Duration::from_secs(60);

/// The name of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceName {
    pub namespace: String,
    pub name: String,
}

/// One registration of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    pub id: String,
    /// IP address or host name.
    pub address: String,
    /// 0: none.
    pub port: u16,
    pub tags: Vec<String>,
    pub node_id: String,
    pub node_name: String,
    pub datacenter: String,
    pub health: ServiceHealth,
    /// Namespace and name as registered; in questions their case does not count.
    pub namespace: String,
    pub name: String,
    pub job_id: String,
    pub alloc_id: String,
}

/// The gateway's answer for one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All instances, whatever their health; empty: there is no such service.
    Instances(Arc<[Instance]>),
    /// The node may not look the name up, with the reason.
    Refused(String),
}

/// All names and answers of a node.
#[derive(Debug, Default)]
pub struct Subscription {
    entries: BTreeMap<ServiceName, Entry>,
    /// When the gateway last said that all answers are current.
    current_at: Option<Duration>,
    /// Rises with every change of the set of names.
    generation: u64,
}

#[derive(Debug)]
struct Entry {
    asked_at: Duration,
    /// `None`: the gateway has not answered yet.
    answer: Option<Answer>,
}

impl Entry {
    fn has_instances(&self) -> bool {
        matches!(&self.answer, Some(Answer::Instances(found)) if !found.is_empty())
    }

    fn is_kept(&self, now: Duration) -> bool {
        let kept = if self.has_instances() {
            KEPT
        } else {
            KEPT_EMPTY
        };
        now < self.asked_at + kept
    }
}

impl Subscription {
    /// Returns the newest answer for a name, and asks for it from now on. A new name takes the place of
    /// another if there are too many: of one without instances first, then of the one whose last
    /// question is the oldest.
    pub fn ask(&mut self, now: Duration, name: &ServiceName) -> Option<Answer> {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.asked_at = now;
            return entry.answer.clone();
        }
        if self.entries.len() >= NAMES_MAX {
            let least = self.entries.iter();
            let least = least.min_by_key(|(_, entry)| (entry.has_instances(), entry.asked_at));
            if let Some(least) = least.map(|(name, _)| name.clone()) {
                self.entries.remove(&least);
            }
        }
        let entry = Entry {
            asked_at: now,
            answer: None,
        };
        self.entries.insert(name.clone(), entry);
        self.generation += 1;
        None
    }

    /// Forgets the names that no question has come for.
    pub fn expire(&mut self, now: Duration) {
        let before = self.entries.len();
        self.entries.retain(|_, entry| entry.is_kept(now));
        if self.entries.len() != before {
            self.generation += 1;
        }
    }

    /// Returns the names to subscribe to, and the generation of their set.
    pub fn names(&self) -> (u64, Vec<ServiceName>) {
        (self.generation, self.entries.keys().cloned().collect())
    }

    /// Records changes, after which all answers are current. Answers for forgotten names are dropped.
    pub fn apply(
        &mut self,
        now: Duration,
        changes: impl IntoIterator<Item = (ServiceName, Answer)>,
    ) {
        self.current_at = Some(now);
        for (name, answer) in changes {
            if let Some(entry) = self.entries.get_mut(&name) {
                entry.answer = Some(answer);
            }
        }
    }

    /// Returns the time since the gateway last said that the answers are current; zero without names.
    pub fn age(&self, now: Duration) -> Duration {
        if self.entries.is_empty() {
            return Duration::ZERO;
        }
        let first = self.entries.values().map(|entry| entry.asked_at).min();
        // Nothing was current before the first question.
        let since = self.current_at.or(first).unwrap_or(now);
        now.saturating_sub(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ServiceName {
        ServiceName {
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    fn instances(ids: &[&str]) -> Answer {
        let found = ids.iter().map(|id| Instance {
            id: (*id).to_owned(),
            ..Instance::default()
        });
        Answer::Instances(found.collect())
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_name_is_asked_for_once_and_its_newest_answer_is_kept() {
        let mut subscription = Subscription::default();
        assert_eq!(subscription.ask(s(0), &name("web")), None);
        assert_eq!(subscription.names(), (1, vec![name("web")]));
        assert_eq!(subscription.ask(s(1), &name("web")), None);
        assert_eq!(subscription.names().0, 1, "nothing to send");
        subscription.apply(s(2), [(name("web"), instances(&["a"]))]);
        assert_eq!(
            subscription.ask(s(3), &name("web")),
            Some(instances(&["a"]))
        );
        subscription.apply(s(4), []);
        assert_eq!(
            subscription.ask(s(5), &name("web")),
            Some(instances(&["a"]))
        );
        let refused = Answer::Refused("no allocation".to_owned());
        subscription.apply(s(6), [(name("web"), refused.clone())]);
        assert_eq!(subscription.ask(s(7), &name("web")), Some(refused));
    }

    #[test]
    fn names_without_questions_are_forgotten_those_without_instances_sooner() {
        let mut subscription = Subscription::default();
        for it in ["web", "typo"] {
            subscription.ask(s(0), &name(it));
        }
        subscription.apply(s(0), [(name("web"), instances(&["a"]))]);
        subscription.expire(s(59));
        assert_eq!(subscription.names(), (2, vec![name("typo"), name("web")]));
        subscription.expire(s(60));
        assert_eq!(subscription.names(), (3, vec![name("web")]));
        subscription.ask(s(599), &name("web"));
        subscription.expire(s(1_198));
        assert_eq!(subscription.names().1, [name("web")]);
        subscription.expire(s(1_199));
        assert_eq!(subscription.names(), (4, vec![]));
        subscription.apply(s(1_200), [(name("web"), instances(&["a"]))]);
        assert_eq!(subscription.names().1, []);
    }

    #[test]
    fn among_too_many_names_a_new_one_replaces_one_without_instances_then_the_oldest() {
        let mut subscription = Subscription::default();
        for number in 0..NAMES_MAX {
            subscription.ask(s(number as u64), &name(&format!("n{number:04}")));
        }
        let known = (0..NAMES_MAX).filter(|number| *number != 500);
        let known = known.map(|number| (name(&format!("n{number:04}")), instances(&["a"])));
        subscription.apply(s(2_000), known);
        subscription.ask(s(2_000), &name("new"));
        let names = subscription.names().1;
        assert_eq!(names.len(), NAMES_MAX);
        assert!(!names.contains(&name("n0500")) && names.contains(&name("new")));
        subscription.apply(s(2_001), [(name("new"), instances(&["a"]))]);
        subscription.ask(s(2_002), &name("newer"));
        let names = subscription.names().1;
        assert!(!names.contains(&name("n0000")) && names.contains(&name("newer")));
    }

    #[test]
    fn the_age_is_the_time_since_the_last_message() {
        let mut subscription = Subscription::default();
        assert_eq!(subscription.age(s(100)), s(0), "nothing is asked for");
        subscription.ask(s(100), &name("web"));
        assert_eq!(subscription.age(s(103)), s(3), "no answer yet");
        subscription.apply(s(105), [(name("web"), instances(&[]))]);
        assert_eq!(subscription.age(s(105)), s(0));
        assert_eq!(subscription.age(s(165)), s(60));
        subscription.apply(s(166), []);
        assert_eq!(subscription.age(s(166)), s(0));
    }
}
