//! The OpenID document (OpenID Connect Discovery 1.0, 3): where verifiers find the keys of an issuer.

use serde::Serialize;

use crate::{ALGORITHM, JWKS_PATH};

/// The document of an issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Discovery {
    issuer: String,
    jwks_uri: String,
    response_types_supported: Vec<&'static str>,
    subject_types_supported: Vec<&'static str>,
    id_token_signing_alg_values_supported: Vec<&'static str>,
}

/// Returns the problem of a setting `oidc_issuer`; `None`: it is usable.
pub fn issuer_problem(issuer: &str) -> Option<&'static str> {
    let host = issuer
        .strip_prefix("https://")
        .or_else(|| issuer.strip_prefix("http://"));
    match host {
        None => Some("want a URL that begins with https:// or http://"),
        Some(host) if host.is_empty() || host.starts_with('/') => Some("it names no host"),
        Some(host) if host.contains(['?', '#']) || host.contains(char::is_whitespace) => {
            Some("want a URL without a query, a fragment or spaces")
        }
        Some(_) if issuer.ends_with('/') => Some("want it without a slash at its end"),
        Some(_) => None,
    }
}

impl Discovery {
    /// Returns the document of a checked issuer; its keys are below it.
    pub fn new(issuer: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            jwks_uri: format!("{issuer}{JWKS_PATH}"),
            response_types_supported: vec!["code"],
            subject_types_supported: vec!["public"],
            id_token_signing_alg_values_supported: vec![ALGORITHM],
        }
    }

    /// Returns the document as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts are always JSON")
    }
}
