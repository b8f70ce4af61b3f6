//! Lines of settings in a file: the key that an error names is looked up in the file's text.

use config::ConfigError;
use toml::de::{DeTable, DeValue};

use super::suggestion;

/// Returns the number of the line, from 1 on, on which the setting stands that `error` is about. `None` if
/// the error names no setting of `text`, or `text` is no TOML.
pub(super) fn line_of(text: &str, error: &ConfigError) -> Option<usize> {
    let (key, unknown) = key_of(error)?;
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut start = None;
    let mut segments = key.split('.').filter(|segment| !segment.is_empty());
    let mut next = segments.next().or(unknown)?;
    loop {
        // An element of a list has the line of its list: `endpoints[1]`.
        let name = next.split('[').next().unwrap_or(next);
        let Some((found, value)) = table.iter().find(|(found, _)| found.get_ref() == name) else {
            break;
        };
        start = Some(found.span().start);
        match (value.get_ref(), segments.next().or(unknown)) {
            (DeValue::Table(inner), Some(segment)) if segment != next => {
                (table, next) = (inner, segment);
            }
            _ => break,
        }
    }
    let before = text.get(..start?)?;
    Some(before.matches('\n').count() + 1)
}

/// Returns the key of the setting, and the name of an unknown setting within it.
fn key_of(error: &ConfigError) -> Option<(&str, Option<&str>)> {
    match error {
        ConfigError::Type { key, .. } => Some((key.as_deref()?, None)),
        ConfigError::At { error, key, .. } => {
            let unknown = match error.as_ref() {
                ConfigError::Message(text) => suggestion::unknown_field(text),
                _ => None,
            };
            Some((key.as_deref()?, unknown))
        }
        ConfigError::Message(text) => Some(("", Some(suggestion::unknown_field(text)?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> ConfigError {
        ConfigError::Message(text.to_owned())
    }

    #[test]
    fn the_line_is_that_of_the_key() {
        let text = "# settings\nworkers = 2\n\n[etcd]\nendpoints = [\n  \"a\",\n]\nprefix = \"x\"\n\n[etcd.tls]\nca = 1\n";
        let unknown = || message("unknown field `prefix`, expected `b`");
        for (key, error, line) in [
            ("workers", message("is 0"), Some(2)),
            ("etcd", message("is wrong"), Some(4)),
            ("etcd.endpoints", message("has no port"), Some(5)),
            ("etcd.endpoints[1]", message("has no port"), Some(5)),
            ("etcd.tls.ca", message("no file"), Some(11)),
            ("etcd", unknown(), Some(8)),
            // Only as deep as the file says.
            ("etcd.tls.key", message("is missing"), Some(10)),
            ("region", message("is missing"), None),
        ] {
            let error = error.extend_with_key(key);
            assert_eq!(line_of(text, &error), line, "{error}");
        }
        let at_top = message("unknown field `workers`, expected `b`");
        assert_eq!(line_of(text, &at_top), Some(2));
        assert_eq!(line_of(text, &message("no setting")), None);
        assert_eq!(line_of("workers =", &at_top), None);
    }
}
