//! Paths and queries of requests. Texts are escaped.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Bytes of a path that stay as they are. Slashes divide the paths of keys and secrets.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');
const QUERY: &AsciiSet = &PATH.add(b'/');

/// A path below `/v1/`, with its query.
#[derive(Clone, Debug)]
pub struct Target {
    path: String,
    query: String,
}

impl Target {
    /// `fixed` is a part of the API; `value` a name or a path behind it, or empty.
    ///
    /// # Errors
    /// The value leaves the API: a component is `..` or `.`.
    pub fn new(fixed: &str, value: &str) -> Result<Self, String> {
        if value.split('/').any(|part| part == ".." || part == ".") {
            return Err(format!(
                "{value:?} has a component . or ..: write the whole path"
            ));
        }
        let value = utf8_percent_encode(value, PATH);
        Ok(Self {
            path: format!("/v1/{fixed}{value}"),
            query: String::new(),
        })
    }

    /// Adds a parameter, unless its value is empty.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.push(name);
            let _ = write!(self.query, "={}", utf8_percent_encode(value, QUERY));
        }
        self
    }

    /// Adds a parameter without a value.
    #[must_use]
    pub fn flag(mut self, name: &str) -> Self {
        self.push(name);
        self
    }

    fn push(&mut self, name: &str) {
        self.query
            .push(if self.query.is_empty() { '?' } else { '&' });
        self.query.push_str(name);
    }

    pub(crate) fn below(&self, prefix: &str) -> String {
        format!("{prefix}{}{}", self.path, self.query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_api() {
        let target = Target::new("kv/", "a b/c?d").unwrap();
        let target = target.with("dc", "").with("ns", "a&b").flag("recurse");
        assert_eq!(target.below("/c"), "/c/v1/kv/a%20b/c%3Fd?ns=a%26b&recurse");
        assert!(
            Target::new("kv/", "../agent/self")
                .unwrap_err()
                .contains("..")
        );
    }
}
