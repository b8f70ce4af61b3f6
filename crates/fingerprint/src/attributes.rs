//! Node attributes, and reading the small files of `/proc` and `/sys` that they come from.

use std::collections::BTreeMap;
use std::path::Path;

/// Attribute → value, as in `cpu.arch` → `amd64`.
pub(crate) type Attributes = BTreeMap<String, String>;

/// Returns the text of a small file, trimmed; empty when it cannot be read.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
