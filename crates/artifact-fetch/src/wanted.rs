//! A wanted artifact.

use std::collections::BTreeMap;

use artifact::Source;

/// A source with its request.
#[derive(Clone)]
pub struct Wanted {
    pub source: Source,
    /// Headers of requests over http.
    pub headers: BTreeMap<String, String>,
    /// Accept every certificate.
    pub insecure: bool,
}
