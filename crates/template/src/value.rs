//! Values of a template while it is rendered.
//!
//! Values are immutable and share their contents, so a copy costs nothing and no value contains itself.
//! Lists and maps know their weight and depth: a template that doubles a value again and again meets
//! [`WEIGHT_MAX`] or [`DEPTH_MAX`] when it builds the value, before any code walks it.

use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of text plus one for each element, shared parts counted each time: 16 MiB, more than any
/// configuration file that a task reads.
pub(crate) const WEIGHT_MAX: usize = 16 << 20;

/// Lists in lists: code that walks a value recurses this deep. JSON parsers stop at similar depths.
pub(crate) const DEPTH_MAX: u8 = 64;

/// One value. `Nothing` is the absence of data (the root's dot); `Nil` is a null that an expression gave.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Nothing,
    Nil,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(Rc<str>),
    List(Rc<List>),
    Map(Rc<Map>),
    /// A value with fields: a variable, a service, an interface.
    Record(Rc<Record>),
    /// The integers from the first to before the second, as `loop` gives them.
    Loop(i64, i64),
    /// The template's store of values; its contents are in the evaluator.
    Scratch,
}

/// The elements of a list.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) items: Vec<Value>,
    weight: usize,
    depth: u8,
}

/// The entries of a map, sorted by key.
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) entries: BTreeMap<Rc<str>, Value>,
    weight: usize,
    depth: u8,
}

/// A value with named fields, perhaps a text of its own, perhaps entries to range over.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) fields: BTreeMap<&'static str, Value>,
    /// Its form in the output and as an argument; without one, the fields are shown.
    pub(crate) text: Option<Rc<str>>,
    /// The entries that `range`, `len` and `index` see.
    pub(crate) entries: Option<Rc<Map>>,
}

impl Value {
    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A list of `items`.
    ///
    /// # Errors
    /// The list would be too large or nested too deep.
    pub(crate) fn list(items: Vec<Self>) -> Result<Self, String> {
        let (weight, depth) = measure(items.iter().map(|item| (1, item)))?;
        Ok(Self::List(Rc::new(List {
            items,
            weight,
            depth,
        })))
    }

    /// A list of texts.
    ///
    /// # Errors
    /// The list would be too large.
    pub(crate) fn texts<T: Into<Rc<str>>>(
        items: impl IntoIterator<Item = T>,
    ) -> Result<Self, String> {
        Self::list(items.into_iter().map(Self::text).collect())
    }

    /// A map of `entries`.
    ///
    /// # Errors
    /// The map would be too large or nested too deep.
    pub(crate) fn map(entries: BTreeMap<Rc<str>, Self>) -> Result<Self, String> {
        let (weight, depth) = measure(entries.iter().map(|(key, value)| (key.len() + 1, value)))?;
        Ok(Self::Map(Rc::new(Map {
            entries,
            weight,
            depth,
        })))
    }

    pub(crate) fn record(fields: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        Self::Record(Rc::new(Record {
            fields: fields.into_iter().collect(),
            text: None,
            entries: None,
        }))
    }

    /// Bytes of text plus one for each element below it, shared parts counted each time.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 1,
            Self::List(list) => list.weight,
            Self::Map(map) => map.weight,
            Self::Record(record) => record.fields.values().map(Self::weight).fold(
                record.entries.as_ref().map_or(1, |map| map.weight),
                usize::saturating_add,
            ),
            _ => 1,
        }
    }

    fn depth(&self) -> u8 {
        match self {
            Self::List(list) => list.depth,
            Self::Map(map) => map.depth,
            // Records are made by look-ups: at most a service with its checks, which hold maps of texts.
            Self::Record(_) => 4,
            _ => 0,
        }
    }

    /// Returns whether `if` and `with` take the value for true.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Nothing | Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Uint(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => !map.entries.is_empty(),
            Self::Record(record) => record
                .entries
                .as_ref()
                .is_none_or(|map| !map.entries.is_empty()),
            Self::Loop(..) | Self::Scratch => true,
        }
    }

    pub(crate) fn is_nil(&self) -> bool {
        matches!(self, Self::Nothing | Self::Nil)
    }

    /// The entries of a map, or of a record that has some.
    pub(crate) fn as_map(&self) -> Option<&BTreeMap<Rc<str>, Self>> {
        match self {
            Self::Map(map) => Some(&map.entries),
            Self::Record(record) => record.entries.as_ref().map(|map| &map.entries),
            _ => None,
        }
    }

    /// The text of a text, or of a record that has one.
    pub(crate) fn as_text(&self) -> Option<&Rc<str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Record(record) => record.text.as_ref(),
            _ => None,
        }
    }

    /// The type's name, as Go prints it (`%T`).
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Nothing | Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) => "[]interface {}",
            Self::Map(_) => "map[string]interface {}",
            Self::Record(_) => "struct",
            Self::Loop(..) => "<-chan int64",
            Self::Scratch => "scratch",
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::text(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::text(value)
    }
}

/// Equality of contents, with numbers of different types compared by value, as `in` and `sprig_has` need it.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing | Self::Nil, Self::Nothing | Self::Nil) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(_) | Self::Record(_), Self::Text(_) | Self::Record(_)) => {
                match (self.as_text(), other.as_text()) {
                    (Some(a), Some(b)) => a == b,
                    _ => {
                        matches!((self, other), (Self::Record(a), Self::Record(b)) if a.fields == b.fields)
                    }
                }
            }
            (Self::List(a), Self::List(b)) => Rc::ptr_eq(a, b) || a.items == b.items,
            (Self::Map(a), Self::Map(b)) => Rc::ptr_eq(a, b) || a.entries == b.entries,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Uint(a), Self::Uint(b)) => a == b,
            (Self::Int(a), Self::Uint(b)) | (Self::Uint(b), Self::Int(a)) => {
                u64::try_from(*a) == Ok(*b)
            }
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Float(a), Self::Int(b)) | (Self::Int(b), Self::Float(a)) => *a == widen(*b),
            (Self::Loop(a, b), Self::Loop(c, d)) => (a, b) == (c, d),
            (Self::Scratch, Self::Scratch) => true,
            _ => false,
        }
    }
}

/// An integer as a float: the nearest, as Go converts.
#[expect(
    clippy::cast_precision_loss,
    reason = "Go's conversion rounds to the nearest float too"
)]
pub(crate) fn widen(value: i64) -> f64 {
    value as f64
}

fn measure<'a>(parts: impl Iterator<Item = (usize, &'a Value)>) -> Result<(usize, u8), String> {
    let (mut weight, mut depth) = (1_usize, 0_u8);
    for (own, value) in parts {
        weight = weight.saturating_add(own).saturating_add(value.weight());
        depth = depth.max(value.depth());
    }
    if weight > WEIGHT_MAX {
        return Err(format!("the value is larger than {} MiB", WEIGHT_MAX >> 20));
    }
    if depth >= DEPTH_MAX {
        return Err(format!("the value has more than {DEPTH_MAX} levels"));
    }
    Ok((weight, depth + 1))
}
