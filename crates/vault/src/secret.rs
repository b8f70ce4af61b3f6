//! Answers to reads and writes: data, and the lease that it may have.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::auth::Auth;

/// An answer with data. `Debug` shows the lease only.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Secret {
    pub request_id: String,
    /// Empty: the data has no lease.
    pub lease_id: String,
    /// Seconds.
    pub lease_duration: u64,
    pub renewable: bool,
    /// An object, or null.
    pub data: Value,
    /// The token that the request created, if it did.
    pub auth: Option<Auth>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("has_lease", &!self.lease_id.is_empty())
            .field("lease_duration", &self.lease_duration)
            .field("renewable", &self.renewable)
            .finish_non_exhaustive()
    }
}

impl Secret {
    /// Reads the body of an answer; that of 204 is empty.
    ///
    /// # Errors
    /// The body is no JSON object of this form. The message has no part of it.
    pub(crate) fn read(body: &[u8]) -> Result<Self, String> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(body).map_err(|_| "its JSON has another form".to_owned())
    }

    /// The names in the answer to a list.
    pub fn keys(&self) -> Vec<String> {
        let keys = self.data.get("keys").and_then(Value::as_array);
        let names = keys.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    }

    pub fn has_lease(&self) -> bool {
        !self.lease_id.is_empty()
    }

    /// The length of the lease; `None`: the answer names none.
    pub fn lease(&self) -> Option<Duration> {
        (self.lease_duration > 0).then(|| Duration::from_secs(self.lease_duration))
    }

    /// A number of the data, by its key.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.data.get(key).and_then(Value::as_u64)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.data.get(key).is_some_and(|value| !value.is_null())
    }

    /// Returns whether the newest version of a secret in KV version 2 is deleted: it has metadata and no
    /// data.
    pub fn is_deleted_version(&self) -> bool {
        self.data.get("data").is_some_and(Value::is_null)
            && self.data.get("metadata").is_some_and(Value::is_object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_leases_are_read_and_not_shown() {
        let body = r#"{"request_id":"r","lease_id":"database/creds/app/1","renewable":true,
            "lease_duration":3600,"data":{"password":"PLANTED"},"warnings":null,"auth":null}"#;
        let secret = Secret::read(body.as_bytes()).unwrap();
        assert!(secret.has_lease() && secret.renewable);
        assert_eq!(secret.lease(), Some(Duration::from_secs(3600)));
        assert_eq!(secret.data["password"], "PLANTED");
        assert!(!format!("{secret:?}").contains("PLANTED"));
        assert!(!Secret::read(b"[PLANTED]").unwrap_err().contains("PLANTED"));
        assert_eq!(Secret::read(b"").unwrap(), Secret::default());
    }

    #[test]
    fn a_list_has_keys() {
        let secret = Secret::read(br#"{"data":{"keys":["a","b/"]}}"#).unwrap();
        assert_eq!(secret.keys(), ["a", "b/"]);
        assert!(Secret::default().keys().is_empty());
    }

    #[test]
    fn a_deleted_version_has_metadata_only() {
        let of = |body: &str| Secret::read(body.as_bytes()).unwrap().is_deleted_version();
        assert!(of(r#"{"data":{"data":null,"metadata":{"deletion_time":"x"}}}"#));
        assert!(!of(r#"{"data":{"data":{},"metadata":{}}}"#));
        assert!(!of(r#"{"data":{"data":null}}"#));
    }
}
