//! The form that jobs are compared in: fields and objects by name, whatever they are of.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

/// A part of a job: its own values, and the blocks in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Tells it from others of its name: two shapes are compared with each other when both agree.
    pub(crate) member: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) objects: Vec<Shape>,
}

/// One value, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Tells it from others of its name; empty where there is only one.
    pub(crate) member: String,
    pub(crate) value: String,
}

impl Shape {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    pub(crate) fn fields_of(shape: Option<&Self>) -> &[Field] {
        shape.map_or(&[], |shape| &shape.fields)
    }

    pub(crate) fn objects_of(shape: Option<&Self>) -> &[Self] {
        shape.map_or(&[], |shape| &shape.objects)
    }

    /// Makes it one of several of its name.
    pub(crate) fn member(mut self, member: impl Display) -> Self {
        self.member = member.to_string();
        self
    }

    /// Adds a value; an empty one is none.
    pub(crate) fn field(self, name: &str, value: impl Display) -> Self {
        let value = value.to_string();
        if value.is_empty() {
            return self;
        }
        self.entry(name.to_owned(), String::new(), value)
    }

    pub(crate) fn optional(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    pub(crate) fn span(self, name: &str, span: Duration) -> Self {
        self.field(name, span.as_nanos())
    }

    /// Adds the entries of a map; an empty value is a value.
    pub(crate) fn map(mut self, name: &str, entries: &BTreeMap<String, String>) -> Self {
        for (key, value) in entries {
            self = self.entry(format!("{name}[{key}]"), String::new(), value.clone());
        }
        self
    }

    /// Adds a value that may be empty.
    pub(crate) fn entry(mut self, name: String, member: String, value: String) -> Self {
        self.fields.push(Field {
            name,
            member,
            value,
        });
        self
    }

    pub(crate) fn object(mut self, object: Option<Self>) -> Self {
        self.objects.extend(object);
        self
    }

    pub(crate) fn objects(mut self, objects: impl IntoIterator<Item = Self>) -> Self {
        self.objects.extend(objects);
        self
    }

    /// Adds objects that nothing but their content tells apart, so none of them is ever edited.
    pub(crate) fn set(mut self, objects: impl IntoIterator<Item = Self>) -> Self {
        let mut seen = BTreeMap::<String, usize>::new();
        for object in objects {
            let content = format!("{object:?}");
            let copies = seen.entry(content.clone()).or_default();
            *copies += 1;
            let member = format!("{copies} {content}");
            self.objects.push(object.member(member));
        }
        self
    }
}

/// Returns a set of words, each a field with the set's own name; `None` when there is none.
pub(crate) fn words(name: &'static str, words: &[String]) -> Option<Shape> {
    if words.is_empty() {
        return None;
    }
    let mut shape = Shape::new(name);
    for word in words {
        shape = shape.entry(name.to_owned(), word.clone(), word.clone());
    }
    Some(shape)
}

/// Returns what a driver or an autoscaler is told, every value with the path to it in its name, as in
/// `Config[args][0]`; `None` when it is told nothing.
pub(crate) fn config(
    name: &'static str,
    config: &serde_json::Map<String, serde_json::Value>,
) -> Option<Shape> {
    let mut shape = Shape::new(name);
    for (key, value) in config {
        flatten(&mut shape, format!("{name}[{key}]"), value);
    }
    (!config.is_empty()).then_some(shape)
}

fn flatten(shape: &mut Shape, name: String, value: &serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                flatten(shape, format!("{name}[{key}]"), value);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (position, item) in items.iter().enumerate() {
                flatten(shape, format!("{name}[{position}]"), item);
            }
        }
        scalar => {
            let value = match scalar {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            shape.fields.push(Field {
                name,
                member: String::new(),
                value,
            });
        }
    }
}
