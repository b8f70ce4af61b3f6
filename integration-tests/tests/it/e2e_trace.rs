//! One registration, one trace: from the command through every service to the task's start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::binary;
use integration_tests::collector::{Collector, SeenSpan};
use integration_tests::suite::{Options, SERVICES, Suite};

const PATIENCE: Duration = Duration::from_secs(60);

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
    result.with_context(|| suite.last_words())?;
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

    let spans = eventually(PATIENCE, || async { whole_trace(&collector.spans()) }).await?;
    assert_one_tree(&spans)?;
    check_metrics(suite).await
}

/// Returns the spans of the trace that the command's root span began, once all have arrived.
fn whole_trace(spans: &[SeenSpan]) -> Result<Vec<SeenSpan>> {
    let root = spans
        .iter()
        .find(|span| span.service.contains("\"kafila\"") && span.parent_span_id.is_empty())
        .context("no root span of the command yet")?;
    let of_trace: Vec<_> = spans
        .iter()
        .filter(|span| span.trace_id == root.trace_id)
        .cloned()
        .collect();
    let services: BTreeSet<&str> = of_trace.iter().map(|span| span.service.as_str()).collect();
    for service in ON_THE_WAY {
        let wanted = format!("\"{service}\"");
        let found = services.iter().any(|name| name.contains(&wanted));
        ensure!(
            found,
            "no span of {service} in the trace; it has {services:?}"
        );
    }
    let started = of_trace.iter().any(|span| span.name.contains("start task"));
    ensure!(
        started,
        "the task's start is not in the trace: {:?}",
        names(&of_trace)
    );
    Ok(of_trace)
}

fn names(spans: &[SeenSpan]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

/// Every span but the root hangs below another of the trace.
fn assert_one_tree(spans: &[SeenSpan]) -> Result<()> {
    let by_id: BTreeMap<&str, &SeenSpan> = spans
        .iter()
        .map(|span| (span.span_id.as_str(), span))
        .collect();
    let start = spans
        .iter()
        .find(|span| span.name.contains("start task"))
        .context("the task's start is gone")?;
    // A parent may still be open (a stream) and so not exported; the way up must reach the trace's
    // root or end at such a one, never loop.
    let mut seen = BTreeSet::new();
    let mut span = start;
    while let Some(parent) = by_id.get(span.parent_span_id.as_str()) {
        ensure!(
            seen.insert(parent.span_id.clone()),
            "the trace loops at {}",
            parent.name
        );
        span = parent;
    }
    Ok(())
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
