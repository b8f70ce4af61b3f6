//! Answers to logins and renewals: a token and its lifetime.

use std::time::Duration;

use serde::Deserialize;

use http_client::Token;

/// The part `auth` of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Auth {
    #[serde(rename = "client_token")]
    pub token: Token,
    /// Its accessor: names the token without giving its rights.
    pub accessor: String,
    pub policies: Vec<String>,
    /// Seconds until the token ends; 0: it does not.
    pub lease_duration: u64,
    pub renewable: bool,
}

impl Auth {
    /// The token's lifetime from now on; `None`: it does not end.
    pub fn lifetime(&self) -> Option<Duration> {
        (self.lease_duration > 0).then(|| Duration::from_secs(self.lease_duration))
    }
}

#[derive(Deserialize)]
struct Answer {
    auth: Option<Auth>,
}

/// Reads the answer to a login or a renewal.
///
/// # Errors
/// The answer has no token.
pub(crate) fn read(body: &[u8]) -> Result<Auth, String> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_| "its JSON has another form".to_owned())?;
    answer
        .auth
        .filter(|auth| !auth.token.is_empty())
        .ok_or_else(|| "it has no auth.client_token".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_gives_a_token_and_its_lifetime() {
        let body = r#"{"request_id":"r","auth":{"client_token":"hvs.X","accessor":"a","policies":["default"],
            "lease_duration":3600,"renewable":true,"metadata":{"role":"web"}}}"#;
        let auth = read(body.as_bytes()).unwrap();
        assert_eq!(auth.token.expose(), "hvs.X");
        assert_eq!(auth.lifetime(), Some(Duration::from_secs(3600)));
        assert!(auth.renewable);
        assert!(!format!("{auth:?}").contains("hvs"));
        for bad in [
            "",
            "{}",
            r#"{"auth":null}"#,
            r#"{"auth":{"client_token":""}}"#,
        ] {
            assert!(read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
