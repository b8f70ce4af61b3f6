//! Tables of the fields of every message in job_spec.proto.

/// A message and its fields, in the order of their declaration.
#[derive(Debug)]
pub struct Message {
    pub name: &'static str,
    pub fields: &'static [Field],
}

#[derive(Debug)]
pub struct Field {
    /// The key in the JSON of the HTTP API.
    pub json: &'static str,
    /// The name in a job file; empty: job files have no such field.
    pub hcl: &'static str,
    pub kind: Kind,
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    /// An integer.
    Whole,
    /// An integer from 0.
    Unsigned,
    Flag,
    TextList,
    /// Texts by name.
    TextMap,
    /// Integer nanoseconds.
    Duration,
    /// Free-form values, as a driver's options are.
    Object,
    /// Base64.
    Bytes,
    One(&'static Message),
    Many(&'static Message),
    /// Messages by name.
    Named(&'static Message),
}

include!(concat!(env!("OUT_DIR"), "/fields.rs"));
