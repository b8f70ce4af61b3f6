//! Parameters of a source: its query and its options. Those of the getter are taken out; the rest goes to
//! the server as it is written.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters of a value that a query cannot have as they are.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

pub(super) struct Query {
    /// Name, decoded value, and the text in the query.
    parameters: Vec<(String, String, String)>,
}

impl Query {
    pub(super) fn read(query: &str, options: &BTreeMap<String, String>) -> Self {
        let of_query = query.split('&').filter(|part| !part.is_empty()).map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decoded(name), decoded(value), part.to_owned())
        });
        let of_options = options.iter().map(|(name, value)| {
            let text = format!(
                "{}={}",
                utf8_percent_encode(name, ENCODED),
                utf8_percent_encode(value, ENCODED)
            );
            (name.clone(), value.clone(), text)
        });
        Self {
            parameters: of_query.chain(of_options).collect(),
        }
    }

    /// Takes a parameter out; of several, the last one counts.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let mut found = None;
        self.parameters.retain(|(it, value, _)| {
            let is_it = it == name;
            if is_it {
                found = Some(value.clone());
            }
            !is_it
        });
        found
    }

    /// Returns the query that is left; `None`: nothing.
    pub(super) fn rest(&self) -> Option<String> {
        let texts: Vec<&str> = self.parameters.iter().map(|it| it.2.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("&"))
    }
}

/// A plus sign is a space in a query, but not in digests, base64 and names of files, which are the values
/// that matter here.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
