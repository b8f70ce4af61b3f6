//! Loads a service's one config struct: defaults, then a TOML file, then the environment, then
//! flags; the later wins. An unknown key is an error.

pub mod duration;
mod environment;
mod error;
pub mod list;
mod position;
mod suggestion;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::{Config, Environment, File, FileFormat};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::ConfigError;

/// Returns the configuration of `service`; `T` has `#[serde(default, deny_unknown_fields)]`, so
/// that every field is optional and an unknown one is refused.
///
/// Shape: a field `etcd.endpoints` of the service `eval-broker` is the environment variable
/// `KAFILA_EVAL_BROKER__ETCD__ENDPOINTS`, and `("etcd.endpoints", "http://a:2379")` in `overrides`.
///
/// # Errors
/// The file is missing or not TOML; a key is unknown; a value is not of its field's type. The error
/// says where it stands.
pub fn load<T: DeserializeOwned + Serialize + Default>(
    service: &str,
    file: Option<&Path>,
    overrides: &[(String, String)],
) -> Result<T, ConfigError> {
    load_from(service, file, environment(), overrides)
}

/// Returns the environment of this process. A name or value that is not UTF-8 is no setting.
fn environment() -> BTreeMap<String, String> {
    let variables = std::env::vars_os();
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// As [`load`], from `file` alone, without the environment.
///
/// # Errors
/// See [`load`].
pub fn load_file<T: DeserializeOwned + Serialize + Default>(
    service: &str,
    file: &Path,
) -> Result<T, ConfigError> {
    load_from(service, Some(file), BTreeMap::new(), &[])
}

/// Splits a flag's `key=value`.
///
/// # Errors
/// There is no `=`, or nothing before it.
pub fn parse_override(text: &str) -> Result<(String, String), ConfigError> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(ConfigError::BadOverride {
            text: text.to_owned(),
        }),
    }
}

/// The sources of settings.
#[derive(Clone, Debug, Default)]
struct Layers {
    file: Option<(PathBuf, String)>,
    environment: BTreeMap<String, String>,
    overrides: Vec<(String, String)>,
}

/// As [`load`], with `environment` in place of the process's own.
fn load_from<T: DeserializeOwned + Serialize + Default>(
    service: &str,
    file: Option<&Path>,
    environment: BTreeMap<String, String>,
    overrides: &[(String, String)],
) -> Result<T, ConfigError> {
    let file = match file {
        None => None,
        Some(path) => match std::fs::read_to_string(path) {
            Ok(text) => Some((path.to_owned(), text)),
            Err(source) => {
                let path = path.to_owned();
                return Err(ConfigError::Unreadable { path, source });
            }
        },
    };
    let layers = Layers {
        file,
        environment: environment::own::<T>(service, environment)?,
        overrides: overrides.to_vec(),
    };
    read(service, &layers).map_err(|error| ConfigError::Invalid {
        service: service.to_owned(),
        problem: suggestion::with_form(suggestion::with_hint(locate_config_error::<T>(
            service, layers, &error,
        ))),
    })
}

fn read<T: DeserializeOwned + Serialize + Default>(
    service: &str,
    layers: &Layers,
) -> Result<T, config::ConfigError> {
    // The defaults are a layer of their own: a section that says one thing leaves the others.
    let mut builder = Config::builder().add_source(Config::try_from(&T::default())?);
    if let Some((_, text)) = &layers.file {
        builder = builder.add_source(File::from_str(text, FileFormat::Toml));
    }
    let source = layers.environment.clone().into_iter().collect();
    builder = builder.add_source(
        Environment::with_prefix(&environment::prefix(service))
            .prefix_separator("__")
            .separator("__")
            .source(Some(source)),
    );
    for (key, value) in &layers.overrides {
        builder = builder.set_override(key, value.as_str())?;
    }
    builder.build()?.try_deserialize()
}

/// Says where the setting stands that cannot be read: the first that is wrong by itself.
fn locate_config_error<T: DeserializeOwned + Serialize + Default>(
    service: &str,
    layers: Layers,
    error: &config::ConfigError,
) -> String {
    let alone = |layers: &Layers| read::<T>(service, layers).err();
    if let Some((path, text)) = layers.file {
        let file = Some((path.clone(), text.clone()));
        let layers = Layers {
            file,
            ..Layers::default()
        };
        if let Some(error) = alone(&layers) {
            let line = position::line_of(&text, &error)
                .map_or_else(String::new, |line| format!("line {line}: "));
            return format!("{}: {line}{}", path.display(), error.to_string().trim_end());
        }
    }
    for (name, value) in layers.environment {
        let hint = environment::suggestion::<T>(service, &name)
            .filter(|meant| *meant != name)
            .map_or_else(String::new, |meant| format!("; {meant} may be meant"));
        let layers = Layers {
            environment: BTreeMap::from([(name.clone(), value)]),
            ..Layers::default()
        };
        if let Some(error) = alone(&layers) {
            return format!("the environment variable {name}: {error}{hint}");
        }
    }
    for (key, value) in layers.overrides {
        let place = format!("-set {key}={value}");
        let layers = Layers {
            overrides: vec![(key, value)],
            ..Layers::default()
        };
        if let Some(error) = alone(&layers) {
            return format!("{place}: {error}");
        }
    }
    error.to_string()
}

#[cfg(test)]
mod tests;
