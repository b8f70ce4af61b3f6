//! The configuration of the stack's OpenTelemetry collector: its structure, which the collector checks
//! at its start, and the addresses in it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};

use crate::collector::Signals;
use crate::yaml;

/// Kinds of components, and the types of each that the stack uses; the distribution `contrib` has them.
const KINDS: [(&str, &[&str]); 4] = [
    ("receivers", &["otlp"]),
    ("processors", &["memory_limiter", "batch"]),
    ("exporters", &["prometheus", "debug"]),
    ("connectors", &["spanmetrics"]),
];

/// The addresses that the collector listens on.
#[derive(Debug, Eq, PartialEq)]
pub struct CollectorConfig {
    /// For spans and log lines.
    pub otlp: String,
    /// For scrapes of the numbers that are made of spans.
    pub metrics: String,
    has_traces: bool,
    has_logs: bool,
}

impl CollectorConfig {
    /// # Errors
    /// The file cannot be read, or the collector would refuse it.
    pub fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file);
        let text = text.with_context(|| file.display().to_string())?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let config = yaml::document(text)?;
        for (kind, known) in KINDS {
            for name in entries(&config, &format!("/{kind}"))?.keys() {
                // `type/name` is another component of the type.
                let kind_of = name.split('/').next().unwrap_or(name);
                ensure!(known.contains(&kind_of), "{kind}: unknown type of {name}");
            }
        }
        check_pipelines(&config)?;
        let address = |pointer: &str| {
            let found = config.pointer(pointer).and_then(Value::as_str);
            let found = found.with_context(|| format!("no {pointer}"));
            found.map(str::to_owned)
        };
        Ok(Self {
            otlp: address("/receivers/otlp/protocols/grpc/endpoint")?,
            metrics: address("/exporters/prometheus/endpoint")?,
            has_traces: takes_otlp(&config, "traces"),
            has_logs: takes_otlp(&config, "logs"),
        })
    }

    /// Returns what the collector accepts: signals with a pipeline from OTLP.
    pub fn signals(&self) -> Signals {
        Signals {
            traces: self.has_traces,
            logs: self.has_logs,
        }
    }
}

/// Each pipeline names declared components, and each declared component is in a pipeline; a connector
/// ends one pipeline and begins another.
fn check_pipelines(config: &Value) -> Result<()> {
    let mut used = BTreeSet::new();
    for (pipeline, parts) in entries(config, "/service/pipelines")? {
        let signal = pipeline.split('/').next().unwrap_or(pipeline);
        ensure!(
            ["traces", "metrics", "logs"].contains(&signal),
            "{pipeline}: unknown signal"
        );
        for part in ["receivers", "exporters"] {
            ensure!(!names(parts, part).is_empty(), "{pipeline} has no {part}");
        }
        for kind in ["receivers", "processors", "exporters"] {
            for name in names(parts, kind) {
                let declared = if entries(config, &format!("/{kind}"))?.contains_key(name) {
                    kind
                } else {
                    "connectors"
                };
                let is_declared = entries(config, &format!("/{declared}"))?.contains_key(name);
                ensure!(
                    is_declared && (declared == kind || kind != "processors"),
                    "{pipeline}: {name} is not in {kind}"
                );
                used.insert((declared, name.to_owned(), kind));
            }
        }
    }
    for (kind, _) in KINDS {
        for name in entries(config, &format!("/{kind}"))?.keys() {
            let ends: &[&str] = if kind == "connectors" {
                &["receivers", "exporters"]
            } else {
                &[kind]
            };
            for end in ends {
                let is_used = used.contains(&(kind, name.clone(), *end));
                ensure!(is_used, "{name} of {kind} is in the {end} of no pipeline");
            }
        }
    }
    Ok(())
}

fn takes_otlp(config: &Value, signal: &str) -> bool {
    let pipeline = config.pointer(&format!("/service/pipelines/{signal}"));
    pipeline.is_some_and(|parts| names(parts, "receivers").contains(&"otlp"))
}

fn entries<'a>(config: &'a Value, pointer: &str) -> Result<&'a Map<String, Value>> {
    let found = config.pointer(pointer).and_then(Value::as_object);
    found.with_context(|| format!("{pointer} is not a map"))
}

/// Returns the components that a pipeline names in `part`.
fn names<'a>(pipeline: &'a Value, part: &str) -> Vec<&'a str> {
    let list = pipeline.get(part).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::command::repository;
    use super::*;

    #[test]
    fn the_collector_of_the_stack_takes_traces_and_logs() {
        let file = repository().join("docker/stack/otel-collector.yaml");
        let expected = CollectorConfig {
            otlp: "0.0.0.0:4317".to_owned(),
            metrics: "0.0.0.0:8889".to_owned(),
            has_traces: true,
            has_logs: true,
        };
        assert_eq!(CollectorConfig::read(&file).unwrap(), expected);
    }

    #[test]
    fn mistakes_in_pipelines_are_found() {
        let file = repository().join("docker/stack/otel-collector.yaml");
        let text = std::fs::read_to_string(file).unwrap();
        for (from, to, expected) in [
            (
                "exporters: [prometheus]",
                "exporters: [promethius]",
                "promethius is not in exporters",
            ),
            (
                "[memory_limiter, batch]",
                "[memory_limiter]",
                "batch of processors is in",
            ),
            (
                "[memory_limiter, batch]",
                "[batch, spanmetrics]",
                "spanmetrics is not in processors",
            ),
            (
                "exporters: [spanmetrics]",
                "exporters: [debug]",
                "spanmetrics of connectors is in",
            ),
            ("  batch:", "  batches:", "unknown type of batches"),
            ("    traces:", "    spans:", "spans: unknown signal"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = CollectorConfig::parse(&text.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(expected), "{to}: {error}");
        }
    }
}
