//! The request for an artifact.

use std::collections::BTreeMap;

use artifact::Source;

/// A source, and how it is asked.
#[derive(Clone)]
pub struct ArtifactRequest {
    pub source: Source,
    /// Headers of requests over http.
    pub headers: BTreeMap<String, String>,
    /// Accept every certificate.
    pub insecure: bool,
}
