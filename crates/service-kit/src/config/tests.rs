//! Layers of settings, and errors that say where a setting stands.

use std::time::Duration;

use serde::Deserialize;

use super::*;
use crate::settings::{EtcdConfig, ListenConfig, TelemetryConfig};

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
            "config.toml: line 3: unknown field `endpoint` (did you mean `endpoints`?)",
        ),
        (
            "workers =",
            &[],
            &[],
            "config.toml: TOML parse error at line 1",
        ),
        (
            "[etcd]\nendpoints = \"foo\"",
            &[],
            &[],
            "config.toml: line 2: ",
        ),
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
fn durations_of_settings_are_written_as_they_are_read() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Setting(#[serde(with = "duration")] Duration);
    for (text, seconds) in [("0s", 0), ("90s", 90), ("1m", 60), ("1d", 86_400)] {
        let setting = Setting(Duration::from_secs(seconds));
        assert_eq!(serde_json::to_value(&setting).unwrap(), text);
        assert_eq!(
            serde_json::from_value::<Setting>(text.into()).unwrap(),
            setting
        );
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
    assert!(message.contains("the unit is missing"), "{message}");
}

#[test]
fn an_address_in_another_form_is_answered_with_an_example() {
    #[derive(Debug, Default, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Listening {
        listen: ListenConfig,
        host_ip: Option<std::net::IpAddr>,
    }
    for (key, example) in [
        ("listen.grpc", "as in 127.0.0.1:4646, for key `listen.grpc`"),
        ("host_ip", "as in 10.0.0.1, for key `host_ip`"),
    ] {
        let overrides = [(key.to_owned(), "abc".to_owned())];
        let loaded = load_from::<Listening>("g", None, BTreeMap::new(), &overrides);
        let message = loaded.unwrap_err().to_string();
        assert!(
            message.contains(&format!("-set {key}=abc: want ")),
            "{message}"
        );
        assert!(message.contains(example), "{message}");
    }
}

#[test]
fn a_missing_file_names_its_path() {
    let error = load::<Example>("eval-broker", Some(Path::new("no/such.toml")), &[]);
    assert!(error.unwrap_err().to_string().contains("no/such.toml"));
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
