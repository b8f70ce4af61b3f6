//! Loads a service's one config struct: defaults, then a TOML file, then the environment, then
//! flags; the later wins. A key that nobody reads is an error, not a comment.

mod environment;
mod meant;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::{Config, Environment, File, FileFormat};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("override {text:?} is not of the form key=value, as in etcd.prefix=/kafila/v1/")]
    BadOverride { text: String },
    #[error(
        "the environment variable {name} is no setting of {service}: two underscores stand between \
         the parts{hint}"
    )]
    UnknownVariable {
        service: String,
        name: String,
        /// What may be meant, with its punctuation; may be empty.
        hint: String,
    },
    /// `problem` says where, names the key, and the known keys when it is not one of them.
    #[error("configuration of {service}: {problem}")]
    Invalid { service: String, problem: String },
}

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
    // A name or value that is no text is nobody's setting.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    load_from(service, file, environment.collect(), overrides)
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

/// Where settings come from.
#[derive(Clone, Debug, Default)]
struct Layers {
    file: Option<(PathBuf, String)>,
    environment: BTreeMap<String, String>,
    overrides: Vec<(String, String)>,
}

/// Does what [`load`] does; `environment` stands in for the process's own.
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
        problem: meant::with_hint(blame::<T>(service, layers, &error)),
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
fn blame<T: DeserializeOwned + Serialize + Default>(
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
            // It knows the line.
            let told = match toml::from_str::<T>(&text) {
                Err(error) => error.to_string(),
                Ok(_) => error.to_string(),
            };
            return format!("{}: {}", path.display(), told.trim_end());
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

/// Spans of time in configuration: a number and a unit, as in `500ms`, `10s`, `1m30s`, `2h`.
///
/// Use with `#[serde(with = "service_kit::config::duration")]`.
pub mod duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    const UNITS: [(&str, u64); 5] = [
        ("ms", 1),
        ("s", 1_000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
    ];

    /// Returns the span that `text` says; `None` when it says none.
    pub fn parse(text: &str) -> Option<Duration> {
        let mut rest = text.trim();
        if rest.is_empty() {
            return None;
        }
        let mut total_ms = 0_u64;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit())?;
            let amount = rest[..digits].parse::<u64>().ok()?;
            rest = &rest[digits..];
            let end = rest
                .find(|c: char| c.is_ascii_digit())
                .unwrap_or(rest.len());
            let (_, unit_ms) = UNITS.iter().find(|(unit, _)| *unit == rest[..end].trim())?;
            total_ms = total_ms.checked_add(amount.checked_mul(*unit_ms)?)?;
            rest = &rest[end..];
        }
        Some(Duration::from_millis(total_ms))
    }

    /// # Errors
    /// The text is not a span.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{text:?} is not a span of time: want a number and a unit, as in 500ms, 10s, 1m30s"
            ))
        })
    }

    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let whole = |(_, unit_ms): &&(&str, u64)| millis > 0 && millis % unit_ms == 0;
        match UNITS.iter().rev().find(whole) {
            Some((unit, unit_ms)) => {
                serializer.collect_str(&format_args!("{}{unit}", millis / unit_ms))
            }
            None => serializer.collect_str("0s"),
        }
    }
}

/// A list in configuration: a TOML array, or a text with commas where a file is not at hand.
///
/// Use with `#[serde(with = "service_kit::config::list")]`.
pub mod list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        Text(String),
        Items(Vec<String>),
    }

    /// # Errors
    /// The value is neither a text nor an array of texts.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<String>, D::Error> {
        Ok(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::Items(items) => items,
            OneOrMany::Text(text) => text
                .split(',')
                .map(|item| item.trim().to_owned())
                .filter(|item| !item.is_empty())
                .collect(),
        })
    }

    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(items: &[String], serializer: S) -> Result<S::Ok, S::Error> {
        items.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde::Deserialize;

    use super::*;
    use crate::settings::{EtcdConfig, TelemetryConfig};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Example {
        etcd: EtcdConfig,
        telemetry: TelemetryConfig,
        workers: u32,
        #[serde(with = "duration")]
        shutdown_grace_period: Duration,
    }

    impl Default for Example {
        fn default() -> Self {
            Self {
                etcd: EtcdConfig::default(),
                telemetry: TelemetryConfig::default(),
                workers: 2,
                shutdown_grace_period: Duration::from_secs(10),
            }
        }
    }

    fn example(
        file: &str,
        environment: &[(&str, &str)],
        overrides: &[(&str, &str)],
    ) -> Result<Example, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, file).unwrap();
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        load_from(
            "eval-broker",
            Some(&path),
            environment.iter().map(own).collect(),
            &overrides.iter().map(own).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn without_anything_the_defaults_hold() {
        assert_eq!(example("", &[], &[]).unwrap(), Example::default());
    }

    #[test]
    fn flags_win_over_the_environment_which_wins_over_the_file() {
        let file = "workers = 3\nshutdown_grace_period = \"1m30s\"\n[telemetry]\nlog = \"debug\"";
        let environment = [
            ("KAFILA_EVAL_BROKER__WORKERS", "4"),
            (
                "KAFILA_EVAL_BROKER__ETCD__ENDPOINTS",
                "http://a:1, http://b:2",
            ),
            ("KAFILA_API_GATEWAY__WORKERS", "9"),
        ];
        let loaded = example(file, &environment, &[("workers", "5")]).unwrap();
        assert_eq!(loaded.workers, 5);
        assert_eq!(loaded.etcd.endpoints, ["http://a:1", "http://b:2"]);
        assert_eq!(loaded.telemetry.log, "debug");
        assert_eq!(loaded.shutdown_grace_period, Duration::from_secs(90));
    }

    #[test]
    fn an_unknown_key_is_named_with_the_known_ones() {
        for (file, environment, overrides, key) in [
            ("wrokers = 3", [].as_slice(), [].as_slice(), "wrokers"),
            ("", &[("KAFILA_EVAL_BROKER__WROKERS", "3")], &[], "wrokers"),
            ("", &[], &[("wrokers", "3")], "wrokers"),
            ("[etcd]\nendpoint = \"x\"", &[], &[], "endpoint"),
        ] {
            let message = example(file, environment, overrides)
                .unwrap_err()
                .to_string();
            assert!(
                message.contains(&format!("unknown field `{key}`")),
                "{message}"
            );
            let known = if key == "endpoint" {
                "`endpoints`"
            } else {
                "`workers`"
            };
            assert!(message.contains(known), "{message}");
        }
    }

    #[test]
    fn a_section_that_says_one_thing_leaves_the_other_defaults() {
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct Gateway {
            etcd: EtcdConfig,
        }
        impl Default for Gateway {
            fn default() -> Self {
                let prefix = "/of/its/own/".to_owned();
                let etcd = EtcdConfig {
                    prefix,
                    ..EtcdConfig::default()
                };
                Self { etcd }
            }
        }
        let overrides = [("etcd.endpoints".to_owned(), "a:1".to_owned())];
        let loaded = load_from::<Gateway>("g", None, BTreeMap::new(), &overrides).unwrap();
        assert_eq!(loaded.etcd.endpoints, ["http://a:1"]);
        assert_eq!(loaded.etcd.prefix, "/of/its/own/");
    }

    #[test]
    fn an_error_says_where_its_setting_stands() {
        let broker = "KAFILA_EVAL_BROKER__ETCD__ENDPOINTS";
        for (file, environment, overrides, place) in [
            (
                "# x\n[etcd]\nendpoint = \"x\"",
                [].as_slice(),
                [].as_slice(),
                "config.toml: TOML parse error at line 3, column 1",
            ),
            (
                "workers =",
                &[],
                &[],
                "config.toml: TOML parse error at line 1",
            ),
            ("[etcd]\nendpoints = \"foo\"", &[], &[], "line 2"),
            (
                "workers = 1",
                &[(broker, "foo")],
                &[],
                "the environment variable KAFILA_EVAL_BROKER__ETCD__ENDPOINTS: ",
            ),
            (
                "workers = 1",
                &[(broker, "a:1")],
                &[("etcd.endpoints", "foo")],
                "-set etcd.endpoints=foo: ",
            ),
            (
                "",
                &[],
                &[("shutdown_grace_period", "10")],
                "-set shutdown_grace_period=10: ",
            ),
        ] {
            let message = example(file, environment, overrides)
                .unwrap_err()
                .to_string();
            assert!(message.contains(place), "{message}");
            if message.contains("foo") {
                assert!(message.contains("it needs a port"), "{message}");
                assert!(message.contains("endpoints"), "names the key: {message}");
            }
        }
    }

    #[test]
    fn a_variable_with_too_few_underscores_is_an_error_that_names_the_right_one() {
        for name in [
            "KAFILA_EVAL_BROKER_ETCD_ENDPOINTS",
            "KAFILA_EVAL_BROKER_ETCD__ENDPOINTS",
            "KAFILA_EVAL_BROKER__ETCD_ENDPOINTS",
        ] {
            let message = example("", &[(name, "a:1")], &[]).unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
            assert!(
                message.contains("KAFILA_EVAL_BROKER__ETCD__ENDPOINTS may be meant"),
                "{message}"
            );
        }
        let message = example("", &[("KAFILA_EVAL_BROKER_WROKERS", "1")], &[])
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("two underscores") && !message.contains("meant"),
            "{message}"
        );
        // Kubernetes sets these beside a service of such a name; other services have others.
        example(
            "",
            &[
                ("KAFILA_EVAL_BROKER_SERVICE_HOST", "10.0.0.1"),
                ("KAFILA_EVAL_BROKER_SERVICE_PORT_GRPC", "7101"),
                ("KAFILA_EVAL_BROKER_PORT", "tcp://10.0.0.1:7101"),
                ("KAFILA_EVAL_BROKER_PORT_7101_TCP_ADDR", "10.0.0.1"),
                ("KAFILA_API_GATEWAY_ETCD_ENDPOINTS", "x"),
            ],
            &[],
        )
        .unwrap();
    }

    #[test]
    fn spans_of_time_are_written_as_people_would() {
        #[derive(Serialize)]
        struct Span(#[serde(with = "duration")] Duration);
        for (millis, text) in [
            (0, "0s"),
            (1, "1ms"),
            (1_500, "1500ms"),
            (90_000, "90s"),
            (60_000, "1m"),
            (86_400_000, "1d"),
        ] {
            let written = serde_json::to_value(Span(Duration::from_millis(millis))).unwrap();
            assert_eq!(written, text);
            assert_eq!(duration::parse(text), Some(Duration::from_millis(millis)));
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_names_its_key() {
        let message = example("workers = \"many\"", &[], &[])
            .unwrap_err()
            .to_string();
        assert!(message.contains("workers"), "{message}");
        let message = example("shutdown_grace_period = \"10\"", &[], &[])
            .unwrap_err()
            .to_string();
        assert!(message.contains("want a number and a unit"), "{message}");
    }

    #[test]
    fn a_missing_file_names_its_path() {
        let error = load::<Example>("eval-broker", Some(Path::new("no/such.toml")), &[]);
        assert!(error.unwrap_err().to_string().contains("no/such.toml"));
    }

    #[test]
    fn spans_of_time_are_read() {
        assert_eq!(
            duration::parse("1h 2m3s4ms"),
            Some(Duration::from_millis(3_723_004))
        );
        for bad in ["", "s", "10", "10 parsecs", "-1s", "99999999999999999999s"] {
            assert_eq!(duration::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn an_override_needs_a_key() {
        assert_eq!(
            parse_override("a.b=c=d").unwrap(),
            ("a.b".into(), "c=d".into())
        );
        assert!(parse_override("a.b").is_err());
        assert!(parse_override("=x").is_err());
    }
}
