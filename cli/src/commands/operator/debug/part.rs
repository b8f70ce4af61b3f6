//! Parts of a debug archive.

use serde_json::Value;

use crate::error::Error;
use crate::output::json::pretty;

/// A part of the archive: its path, and its content or the reason why it is missing.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) content: Result<Vec<u8>, String>,
}

impl Part {
    pub(super) fn new(name: impl Into<String>, content: Result<Vec<u8>, String>) -> Self {
        Self {
            name: name.into(),
            content,
        }
    }

    pub(super) fn json(name: &str, value: Result<Value, Error>) -> Self {
        let content = value.map(|value| pretty(&value).into_bytes());
        Self::new(name, content.map_err(|error| error.to_string()))
    }
}
