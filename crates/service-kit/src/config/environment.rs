//! The environment variables of a service, and misspelt ones.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::error::ConfigError;

/// Returns the prefix of the variables of `service`, before the two underscores.
pub(super) fn prefix(service: &str) -> String {
    format!("KAFILA_{}", service.to_uppercase().replace('-', "_"))
}

/// Returns the variables that are settings of `service`.
///
/// # Errors
/// One is not, but begins as if it were: it would be ignored without a word.
pub(super) fn own<T: Serialize + Default>(
    service: &str,
    mut environment: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let prefix = format!("{}_", prefix(service));
    environment.retain(|name, _| name.starts_with(&prefix));
    for name in environment.keys() {
        let rest = &name[prefix.len()..];
        if rest.starts_with('_') || is_from_kubernetes(rest) {
            continue;
        }
        let hint = suggestion::<T>(service, name)
            .map_or_else(String::new, |meant| format!("; {meant} may be meant"));
        return Err(ConfigError::UnknownVariable {
            service: service.to_owned(),
            name: name.clone(),
            hint,
        });
    }
    environment.retain(|name, _| name[prefix.len()..].starts_with('_'));
    Ok(environment)
}

/// Tells whether Kubernetes sets it in every container beside a service called `kafila-…`.
fn is_from_kubernetes(rest: &str) -> bool {
    let is_port = rest.split_once("PORT_").is_some_and(|(before, after)| {
        let starts_a_word = before.is_empty() || before.ends_with('_');
        starts_a_word && after.starts_with(|first: char| first.is_ascii_digit())
    });
    rest.ends_with("SERVICE_HOST")
        || rest.contains("SERVICE_PORT")
        || rest == "PORT"
        || rest.ends_with("_PORT")
        || is_port
}

/// Returns the variable whose name differs from `name` in nothing but underscores.
pub(super) fn suggestion<T: Serialize + Default>(service: &str, name: &str) -> Option<String> {
    let mut keys = Vec::new();
    collect(&serde_json::to_value(T::default()).ok()?, "", &mut keys);
    let plain = |name: &str| name.replace('_', "").to_uppercase();
    keys.into_iter()
        .map(|key| format!("{}{}", prefix(service), key.to_uppercase()))
        .find(|known| plain(known) == plain(name))
}

/// Collects the keys below `value`, each part after two underscores.
fn collect(value: &Value, path: &str, keys: &mut Vec<String>) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                collect(value, &format!("{path}__{key}"), keys);
            }
        }
        _ => keys.push(path.to_owned()),
    }
}
