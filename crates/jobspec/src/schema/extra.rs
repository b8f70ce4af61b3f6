//! Extras: fields of job files beyond the declared fields of a message.

use hcl::schema::{Attribute, Finish, Ignored, Label, Refused};
use job_fields::fields::Message;
use serde_json::{Map, Value};

pub(super) struct Extra {
    /// The message's name.
    pub(super) message: &'static str,
    /// Noun and key of the block's label.
    pub(super) label: Option<(&'static str, &'static str)>,
    pub(super) attributes: &'static [Attribute],
    /// Name, key and message of blocks that only HCL has.
    pub(super) blocks: &'static [(&'static str, &'static str, &'static Message)],
    pub(super) refused: &'static [Refused],
    pub(super) ignored: &'static [Ignored],
    pub(super) finish: Option<Finish>,
}

impl Extra {
    /// Returns nothing extra.
    pub(super) const fn of(message: &'static str) -> Self {
        Self {
            message,
            label: None,
            attributes: &[],
            blocks: &[],
            refused: &[],
            ignored: &[],
            finish: None,
        }
    }

    /// Returns a label with this noun, whose text is the value of `json`.
    pub(super) const fn labelled(
        message: &'static str,
        noun: &'static str,
        json: &'static str,
    ) -> Self {
        let mut extra = Self::of(message);
        extra.label = Some((noun, json));
        extra
    }

    pub(super) fn label(&self) -> Option<Label> {
        self.label.map(|(noun, json)| Label { noun, json })
    }
}

/// Sets a text that HCL job files may leave out and the API's JSON may not.
pub(super) fn default(map: &mut Map<String, Value>, key: &str, text: &str) {
    let absent = map.get(key).is_none_or(Value::is_null);
    if absent {
        map.insert(key.to_owned(), text.into());
    }
}

/// Sets a duration that HCL job files may leave out and the API's JSON may not.
pub(super) fn default_duration(map: &mut Map<String, Value>, key: &str, nanoseconds: i64) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), nanoseconds.into());
    }
}

/// Returns the items of a list; none if there is no list.
pub(super) fn items(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}
