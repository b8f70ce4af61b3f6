//! Filters of events.

use model::{FieldErrors, Namespace};
use proto::v1;

/// All topics. Source: Nomad's names on the wire.
pub const TOPICS: [&str; 6] = [
    "Job",
    "Allocation",
    "Evaluation",
    "Deployment",
    "Node",
    "NodePool",
];
const ANY: &str = "*";
/// The limit of filters for one caller: each event is compared with all of them.
const FILTERS_MAX: usize = 256;

/// The events that a caller selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// `None`: every one.
    namespace: Option<String>,
    /// Empty: everything.
    wanted: Vec<TopicFilter>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TopicFilter {
    /// `None`: any.
    topic: Option<&'static str>,
    /// `None`: any.
    key: Option<String>,
}

impl Filter {
    /// Reads the filters of a request.
    ///
    /// # Errors
    /// An unknown topic; too many filters.
    pub fn read(namespace: String, filters: Vec<v1::EventFilter>) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        if filters.len() > FILTERS_MAX {
            errors.push(
                "filters",
                format!("{} are too many: want at most {FILTERS_MAX}", filters.len()),
            );
        }
        let mut wanted = Vec::new();
        for (position, filter) in filters.into_iter().take(FILTERS_MAX).enumerate() {
            let topic = TOPICS.into_iter().find(|topic| *topic == filter.topic);
            if topic.is_none() && filter.topic != ANY {
                errors.push(
                    format!("filters[{position}].topic"),
                    format!(
                        "there is no topic {:?}: want one of {}, or {ANY}",
                        filter.topic,
                        TOPICS.join(", ")
                    ),
                );
                continue;
            }
            let key = Some(filter.key).filter(|key| !key.is_empty() && key != ANY);
            wanted.push(TopicFilter { topic, key });
        }
        let namespace = match namespace.as_str() {
            ANY => None,
            name => Some(Namespace::or_default(name).to_owned()),
        };
        errors.into_result(Self { namespace, wanted })
    }

    /// Tells whether `event` passes.
    pub fn admits(&self, event: &v1::Event) -> bool {
        let is_in_namespace = event.namespace.is_empty()
            || self
                .namespace
                .as_ref()
                .is_none_or(|name| *name == event.namespace);
        is_in_namespace && (self.wanted.is_empty() || self.wanted.iter().any(|it| it.is(event)))
    }
}

impl TopicFilter {
    fn is(&self, event: &v1::Event) -> bool {
        let is_key = |key: &String| *key == event.key || event.filter_keys.contains(key);
        self.topic.is_none_or(|topic| topic == event.topic) && self.key.as_ref().is_none_or(is_key)
    }
}
