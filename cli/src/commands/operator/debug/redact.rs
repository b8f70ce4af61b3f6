//! Removal of secrets from settings.

use proto::v1;
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

/// As [`SECRET`], in the names of fields of a log, where keys are those of the store and users are callers.
const SECRET_FIELDS: [&str; 6] = [
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "authorization",
];

/// The marker of private keys as PEM, whatever their kind.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// Removes the values of settings that may be secrets, private keys under any name, and user names,
/// passwords and queries within URLs.
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
            if text.contains(PRIVATE_KEY) {
                REDACTED.clone_into(text);
            } else if let Some(redacted) = without_secrets(text) {
                *text = redacted;
            }
        }
        _ => {}
    }
}

/// Removes the values of fields that may be secrets, private keys, and what [`redact`] removes from URLs.
/// Services log no secrets; this is for those that come with the words of another program.
pub(super) fn line(mut line: v1::LogLine) -> v1::LogLine {
    line.message = text(&line.message);
    let of_spans = line.spans.iter_mut().flat_map(|span| &mut span.fields);
    for field in line.fields.iter_mut().chain(of_spans) {
        let name = field.name.to_lowercase();
        field.value = match SECRET_FIELDS.iter().any(|word| name.contains(word)) {
            true => REDACTED.to_owned(),
            false => text(&field.value),
        };
    }
    line
}

/// As [`line`], for the lines of a log file, where a field is `name=value` or `"name": "value"`.
pub(super) fn log_file(content: &[u8]) -> Vec<u8> {
    let content = String::from_utf8_lossy(content);
    let mut in_key = false;
    let lines = content.split('\n').map(|line| {
        // A private key has a line for each part of it.
        let begins = line.contains(PRIVATE_KEY) && line.contains("BEGIN");
        let ends = line.contains(PRIVATE_KEY) && line.contains("END");
        let is_key = in_key || begins;
        in_key = is_key && !ends;
        match is_key {
            true => REDACTED.to_owned(),
            false => without_secret_fields(&text(line)),
        }
    });
    lines.collect::<Vec<_>>().join("\n").into_bytes()
}

/// Removes each value that follows a name with a word of [`SECRET_FIELDS`], up to the next space or quote.
fn without_secret_fields(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(at + 1);
        kept.push_str(before);
        let name_end = before.trim_end_matches(['=', ':', '"', ' ']);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let start = name_end.rfind(|c| !is_name(c)).map_or(0, |last| last + 1);
        let name = name_end.get(start..).unwrap_or_default().to_lowercase();
        rest = after;
        if SECRET_FIELDS.iter().any(|word| name.contains(word)) {
            let value = after.trim_start_matches([' ', '"']);
            kept.push_str(&after[..after.len() - value.len()]);
            let end = value.find([' ', '"', ',', '}']).unwrap_or(value.len());
            if end > 0 {
                kept.push_str(REDACTED);
            }
            rest = &value[end..];
        }
    }
    kept.push_str(rest);
    kept
}

fn text(text: &str) -> String {
    if text.contains(PRIVATE_KEY) {
        return REDACTED.to_owned();
    }
    let words = text.split(' ').map(|word| {
        let redacted = without_secrets(word);
        redacted.unwrap_or_else(|| word.to_owned())
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns a URL without its user, password and query; `None`: it has none of them.
fn without_secrets(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rfind('@').map(|at| &authority[at..]);
    let query = path.find('?');
    if host.is_none() && query.is_none() {
        return None;
    }
    let host = host.map_or_else(|| authority.to_owned(), |host| format!("{REDACTED}{host}"));
    let path = query.map_or_else(
        || path.to_owned(),
        |start| format!("{}?{REDACTED}", &path[..start]),
    );
    Some(format!("{scheme}://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_of_a_log_have_no_secrets() {
        let field = |name: &str, value: &str| v1::LogField {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let planted = v1::LogLine {
            message: "cannot fetch https://u:hunter2@h/a?token=hunter2 from h".to_owned(),
            fields: vec![
                field("job_id", "web"),
                field("error", "see http://h/x?k=hunter2"),
                field("vault_token", "hunter2"),
            ],
            spans: vec![v1::LogSpan {
                name: "rpc".to_owned(),
                fields: vec![
                    field("client_secret", "hunter2"),
                    field("pem", "-----BEGIN EC PRIVATE KEY-----\nhunter2"),
                ],
            }],
            ..v1::LogLine::default()
        };
        let cleaned = line(planted);
        let shown = format!("{cleaned:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(
            shown.contains("cannot fetch https://") && shown.contains("from h"),
            "{shown}"
        );
        assert_eq!(cleaned.fields[0].value, "web");
    }

    #[test]
    fn a_log_file_has_no_secrets() {
        let planted = "\
2026-01-01 INFO login user=a password=hunter2 token=hunter2, https://u:hunter2@h/x
{\"level\":\"info\",\"vault_token\": \"hunter2\",\"job_id\":\"web\"}
-----BEGIN EC PRIVATE KEY-----
hunter2
-----END EC PRIVATE KEY-----
Authorization: hunter2 and the rest at 10:15:20
password=
";
        let cleaned = String::from_utf8(log_file(planted.as_bytes())).unwrap();
        assert!(!cleaned.contains("hunter2"), "{cleaned}");
        for kept in [
            "INFO login user=a password=<redacted> token=<redacted>, https://<redacted>@h/x",
            "\"job_id\":\"web\"",
            "and the rest at 10:15:20",
        ] {
            assert!(cleaned.contains(kept), "{kept}: {cleaned}");
        }
        assert_eq!(cleaned.lines().count(), planted.lines().count());
    }

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
            "issuer": "https://g1.example.org/oidc?sig=hunter2",
            "blob": "-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----",
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
        assert_eq!(settings["issuer"], "https://g1.example.org/oidc?<redacted>");
    }
}
