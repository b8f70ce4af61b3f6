//! Placement metrics of an allocation: as the scheduler made them, or the text of the store.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::alloc_metric::AllocMetric;

/// Placement metrics. Every replica holds those of every allocation, and few requests read them: from
/// the store they stay a text, which takes a fifth of the memory.
#[derive(Clone, Debug)]
pub struct StoredMetric(Form);

#[derive(Clone, Debug)]
enum Form {
    Made(Box<AllocMetric>),
    Text(Box<RawValue>),
}

impl StoredMetric {
    /// Returns the metrics; those of a text of another form are empty.
    pub fn read(&self) -> Cow<'_, AllocMetric> {
        match &self.0 {
            Form::Made(metric) => Cow::Borrowed(metric),
            Form::Text(text) => Cow::Owned(serde_json::from_str(text.get()).unwrap_or_default()),
        }
    }
}

impl From<AllocMetric> for StoredMetric {
    fn from(metric: AllocMetric) -> Self {
        Self(Form::Made(Box::new(metric)))
    }
}

impl From<Box<AllocMetric>> for StoredMetric {
    fn from(metric: Box<AllocMetric>) -> Self {
        Self(Form::Made(metric))
    }
}

/// Compares the metrics, not their texts, whose members may stand in another order.
impl PartialEq for StoredMetric {
    fn eq(&self, other: &Self) -> bool {
        self.read() == other.read()
    }
}

impl Eq for StoredMetric {}

impl Serialize for StoredMetric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Form::Made(metric) => metric.serialize(serializer),
            Form::Text(text) => text.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for StoredMetric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Form::Text(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::StoredMetric;
    use crate::alloc_metric::AllocMetric;

    fn read(text: &str) -> StoredMetric {
        serde_json::from_str(text).expect("it is JSON")
    }

    #[test]
    fn metrics_survive_the_store_and_are_written_as_they_were_read() {
        let made = StoredMetric::from(AllocMetric {
            nodes_evaluated: 7,
            score_per_mille: -922,
            ..AllocMetric::default()
        });
        let text = serde_json::to_string(&made).expect("it is JSON");
        let stored = read(&text);
        assert_eq!(stored, made);
        assert_eq!(stored.read().score_per_mille, -922);
        assert_eq!(serde_json::to_string(&stored).expect("it is JSON"), text);
    }

    #[test]
    fn the_order_of_members_makes_no_difference() {
        assert_eq!(read(r#"{"ev":1,"pool":2}"#), read(r#"{"pool":2,"ev":1}"#));
        assert_ne!(read(r#"{"ev":1}"#), read(r#"{"ev":2}"#));
    }

    #[test]
    fn metrics_of_another_form_are_empty() {
        let empty = AllocMetric::default();
        for text in ["{}", "7", r#"{"ev":"many"}"#] {
            assert_eq!(*read(text).read(), empty, "{text}");
        }
    }
}
