//! The context of a rendering: all data from outside the template.

use std::collections::BTreeMap;

use crate::budget::Limits;
use crate::sockaddr;
use crate::source::{Files, Source};

/// Everything outside the template that a rendering sees.
pub struct RenderContext<'a> {
    /// The task's environment.
    pub env: &'a BTreeMap<String, String>,
    pub files: &'a dyn Files,
    pub source: &'a dyn Source,
    /// The namespace of `nomadVar` without `@namespace`.
    pub namespace: &'a str,
    /// The region of `nomadVar` without `.region`.
    pub region: &'a str,
    /// Network interfaces of the node, for `sockaddr`.
    pub interfaces: &'a [sockaddr::Interface],
    /// The time, for `timestamp`.
    pub now: jiff::Timestamp,
    /// A key that a map does not have is an error (`error_on_missing_key`).
    pub missing_key_is_error: bool,
    pub limits: Limits,
}
