//! Removal of secrets from settings.

use serde_json::Value;

/// Stands for a removed value.
pub(super) const REDACTED: &str = "<redacted>";

/// Words in the name of a setting whose value may be a secret. Paths of secret files are removed, too.
const SECRET: [&str; 8] = [
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "key",
    "user",
    "auth",
];

/// Removes the values of settings that may be secrets, and user names and passwords within URLs.
pub(super) fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.to_lowercase();
                if SECRET.iter().any(|word| name.contains(word)) && !value.is_boolean() {
                    *value = Value::from(REDACTED);
                } else {
                    redact(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(redact),
        Value::String(text) => {
            if let Some(redacted) = without_user(text) {
                *text = redacted;
            }
        }
        _ => {}
    }
}

/// Returns a URL without its user and password; `None`: it has none.
fn without_user(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find('/').unwrap_or(rest.len());
    let at = rest[..end].rfind('@')?;
    Some(format!("{scheme}://{REDACTED}{}", &rest[at..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_removed_wherever_they_are() {
        let mut settings = json!({
            "name": "g1",
            "etcd": {
                "endpoints": ["http://10.0.0.1:2379", "http://root:hunter2@10.0.0.2:2379/x"],
                "user": "root",
                "Password": "hunter2",
            },
            "tls": { "key_file": "/etc/key.pem", "verify_token": true },
            "meta": [{ "api_token": "hunter2" }, { "secrets": { "a": "hunter2" } }],
        });
        redact(&mut settings);
        let text = settings.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("key.pem"),
            "{text}"
        );
        assert_eq!(settings["name"], "g1");
        assert_eq!(settings["tls"]["verify_token"], true);
        let endpoints = &settings["etcd"]["endpoints"];
        assert_eq!(endpoints[0], "http://10.0.0.1:2379");
        assert_eq!(endpoints[1], "http://<redacted>@10.0.0.2:2379/x");
    }
}
