//! Shapes: the form that jobs are compared in, fields and objects by name.
//!
//! A shape is made of the JSON of a canonical job, field by field as declared. The type of a field
//! decides how it shows; the exceptions, noun by noun, are the tables in `names`.

use std::collections::BTreeMap;

use job_fields::fields::{Field as Declared, Kind, Message};
use model::Payload;
use serde_json::{Map, Value};

use crate::names::{self, Form};

/// A part of a job: its own values, and the blocks in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Identifies it among others of its name: two shapes are compared when both agree.
    pub(crate) member: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) objects: Vec<Shape>,
    /// Values that make a difference without being shown.
    pub(crate) unshown: Vec<String>,
}

/// One value, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Identifies it among others of its name; empty where there is only one.
    pub(crate) member: String,
    pub(crate) value: String,
}

impl Shape {
    /// Returns the shape of a message's JSON that a diff calls `noun`.
    pub(crate) fn of(
        noun: &'static str,
        message: &'static Message,
        object: &Map<String, Value>,
    ) -> Self {
        let mut shape = Self {
            name: noun,
            ..Self::default()
        };
        for field in message.fields {
            shape.add(field, object.get(field.json).unwrap_or(&Value::Null));
        }
        for (name, value) in names::implied(noun) {
            shape.field((*name).to_owned(), String::new(), (*value).to_owned());
        }
        shape
    }

    pub(crate) fn fields_of(shape: Option<&Self>) -> &[Field] {
        shape.map_or(&[], |shape| &shape.fields)
    }

    pub(crate) fn objects_of(shape: Option<&Self>) -> &[Self] {
        shape.map_or(&[], |shape| &shape.objects)
    }

    fn add(&mut self, field: &'static Declared, value: &Value) {
        let key = field.json;
        match names::form(self.name, field) {
            Form::Hidden => {}
            Form::Unshown => self.unshown.push(value.to_string()),
            Form::Value => self.value(key, value),
            Form::Size => self.size(key, value),
            Form::Entries => self.entries(key, value),
            Form::Words(name) => self.objects.extend(words(name, value)),
            Form::Tree(name) => self.objects.extend(tree(name, value)),
            Form::Object(name) => self.objects.extend(object(name, field.kind, value)),
            Form::Set(name) => self.set(name, field.kind, value),
            Form::Keyed(name, label) => self.keyed(name, field.kind, label, value),
            Form::Numbered(name) => self.numbered(name, field.kind, value),
            Form::Named(name) => self.named(name, field.kind, value),
        }
    }

    fn field(&mut self, name: String, member: String, value: String) {
        self.fields.push(Field {
            name,
            member,
            value,
        });
    }

    /// Adds a scalar; an empty one is none.
    fn value(&mut self, key: &str, value: &Value) {
        let text = match value {
            Value::Null => names::absent(self.name, key).to_owned(),
            value => text(value),
        };
        if !text.is_empty() && !names::is_default(self.name, key, &text) {
            self.field(key.to_owned(), String::new(), text);
        }
    }

    /// Adds the size of base64 that is too long, or too private, to be shown.
    fn size(&mut self, key: &str, value: &Value) {
        let payload = value.as_str().and_then(Payload::from_base64);
        if let Some(payload) = payload.filter(|payload| !payload.is_empty()) {
            let text = format!("{} bytes", payload.0.len());
            self.field(key.to_owned(), String::new(), text);
            self.unshown.push(value.to_string());
        }
    }

    /// Adds the entries of a map of texts; an empty text is a value.
    fn entries(&mut self, key: &str, value: &Value) {
        for (name, value) in value.as_object().into_iter().flatten() {
            self.field(format!("{key}[{name}]"), String::new(), text(value));
        }
    }

    /// Adds objects that only their content identifies, so none of them is ever edited.
    fn set(&mut self, name: &'static str, kind: Kind, value: &Value) {
        let mut seen = BTreeMap::<String, usize>::new();
        for mut object in items(value)
            .iter()
            .filter_map(|item| object(name, kind, item))
        {
            let content = format!("{object:?}");
            let copies = seen.entry(content.clone()).or_default();
            *copies += 1;
            object.member = format!("{copies} {content}");
            self.objects.push(object);
        }
    }

    /// Adds objects that the value of their field `label` identifies.
    fn keyed(&mut self, name: &'static str, kind: Kind, label: &str, value: &Value) {
        for item in items(value) {
            self.member(name, kind, text(&item[label]), item);
        }
    }

    /// Adds objects that their position identifies.
    fn numbered(&mut self, name: &'static str, kind: Kind, value: &Value) {
        for (position, item) in items(value).iter().enumerate() {
            self.member(name, kind, position.to_string(), item);
        }
    }

    /// Adds the objects of an object of objects.
    fn named(&mut self, name: &'static str, kind: Kind, value: &Value) {
        for (key, item) in value.as_object().into_iter().flatten() {
            self.member(name, kind, key.clone(), item);
        }
    }

    fn member(&mut self, name: &'static str, kind: Kind, member: String, value: &Value) {
        let shape = object(name, kind, value);
        self.objects
            .extend(shape.map(|shape| Self { member, ..shape }));
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the shape of a message's JSON; `None` of an absent one.
fn object(name: &'static str, kind: Kind, value: &Value) -> Option<Shape> {
    match kind {
        Kind::One(message) | Kind::Many(message) | Kind::Named(message) => {
            Some(Shape::of(name, message, value.as_object()?))
        }
        _ => None,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns a set of texts, each a field with the set's own name; `None` when it is empty.
fn words(name: &'static str, value: &Value) -> Option<Shape> {
    let mut shape = Shape {
        name,
        ..Shape::default()
    };
    for word in items(value).iter().map(text) {
        shape.field(name.to_owned(), word.clone(), word);
    }
    (!shape.fields.is_empty()).then_some(shape)
}

/// Returns free-form values, the path of each in its name, as in `args[0]`; `None` when there are
/// none.
fn tree(name: &'static str, value: &Value) -> Option<Shape> {
    let mut shape = Shape {
        name,
        ..Shape::default()
    };
    for (key, value) in value.as_object().into_iter().flatten() {
        flatten(&mut shape, key.clone(), value);
    }
    (!shape.fields.is_empty()).then_some(shape)
}

fn flatten(shape: &mut Shape, name: String, value: &Value) {
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
        scalar => shape.field(name, String::new(), text(scalar)),
    }
}
