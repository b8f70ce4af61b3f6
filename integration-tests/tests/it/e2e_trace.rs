//! One registration, one trace: from the command through every service to the task's start.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::binary;
use integration_tests::collector::{Collector, SeenSpan};
use integration_tests::suite::{Options, SERVICES, Suite};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Those that a registration passes through; liveness and rollouts have traces of their own.
const ON_THE_WAY: [&str; 6] = [
    "kafila",
    "api-gateway",
    "eval-broker",
    "scheduler-worker",
    "plan-applier",
    "client-node",
];

const JOB: &str = r#"
job "traced" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      resources {
        cpu    = 20
        memory = 16
      }
    }
    ephemeral_disk {
      size = 200
    }
    update {
      min_healthy_time = "100ms"
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_is_one_trace_from_the_command_to_the_task() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let collector = Collector::start().await?;
    let options = Options {
        otlp_endpoint: Some(collector.endpoint()),
        ..Options::default()
    };
    let suite = Suite::start(options).await?;
    let result = play(&suite, &collector).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play(suite: &Suite, collector: &Collector) -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), JOB)?;
    let path = file.path().to_string_lossy().into_owned();
    let endpoint = collector.endpoint();
    let environment = [("KAFILA_OTLP_ENDPOINT", endpoint.as_str())];
    binary::run_with(&suite.address(), &["job", "run", &path], &environment)
        .await?
        .ok()?;

    eventually(TIMEOUT, || async { check_trace(&collector.spans()) }).await?;
    check_metrics(suite).await
}

/// Looks whether spans of every service on the way, and the task's start, hang below the command's
/// root span. They arrive as they end, in any order.
fn check_trace(spans: &[SeenSpan]) -> Result<()> {
    let root = spans
        .iter()
        .find(|span| span.service == "kafila" && span.parent_span_id.is_empty())
        .context("no root span of the command yet")?;
    let of_trace: Vec<_> = spans
        .iter()
        .filter(|span| span.trace_id == root.trace_id)
        .cloned()
        .collect();
    let by_id: BTreeMap<&str, &SeenSpan> = of_trace
        .iter()
        .map(|span| (span.span_id.as_str(), span))
        .collect();
    let connected: Vec<&SeenSpan> = of_trace
        .iter()
        .filter(|span| hangs_below(&by_id, span, root))
        .collect();
    for service in ON_THE_WAY {
        ensure!(
            connected.iter().any(|span| span.service == service),
            "no span of {service} below the command's: {:?}",
            names(&of_trace)
        );
    }
    ensure!(
        connected
            .iter()
            .any(|span| span.name.contains("start task") && span.service == "client-node"),
        "the task's start is not below the command: {:?}",
        names(&of_trace)
    );
    Ok(())
}

fn names(spans: &[SeenSpan]) -> Vec<(&str, &str)> {
    spans
        .iter()
        .map(|span| (span.service.as_str(), span.name.as_str()))
        .collect()
}

/// Tells whether the way up from `span` reaches `root`.
fn hangs_below(by_id: &BTreeMap<&str, &SeenSpan>, span: &SeenSpan, root: &SeenSpan) -> bool {
    let mut span = span;
    // No way is longer than there are spans, unless it loops.
    for _ in 0..=by_id.len() {
        if span.span_id == root.span_id {
            return true;
        }
        match by_id.get(span.parent_span_id.as_str()) {
            Some(parent) => span = parent,
            None => return false,
        }
    }
    false
}

/// Every process answers `/metrics` with something of its own.
async fn check_metrics(suite: &Suite) -> Result<()> {
    for name in suite.names() {
        let text = suite
            .metrics(&name)
            .await
            .with_context(|| format!("/metrics of {name}"))?;
        let service = if SERVICES.contains(&name.as_str()) {
            name.as_str()
        } else {
            "client-node"
        };
        let prefix = format!("kafila_{}_", service.replace('-', "_"));
        ensure!(
            text.contains(&prefix),
            "{name} has no metric that begins with {prefix}:\n{text}"
        );
    }
    Ok(())
}
