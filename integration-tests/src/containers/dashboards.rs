//! Metrics named by dashboards and alerts, compared with those that containers export.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::stack::Stack;
use crate::api::eventually;

/// Beginnings of the names that belong to the stack.
const PREFIXES: [&str; 3] = ["kafila_", "etcd_", "process_"];

/// Longer than the longest interval of samples: the leader of the cluster-controller looks at etcd every
/// 10 s.
const SAMPLED: Duration = Duration::from_secs(60);

/// Checks every dashboard and alert in `folder` against the stack's metrics.
///
/// # Errors
/// A named metric is exported by no container; the error lists them all.
pub async fn check(stack: &Stack, folder: &Path) -> Result<usize> {
    eventually(SAMPLED, || compare(stack, folder)).await
}

async fn compare(stack: &Stack, folder: &Path) -> Result<usize> {
    let mut exported = BTreeSet::new();
    for (service, port) in [
        ("api-gateway", 9100),
        ("eval-broker", 9100),
        ("scheduler-worker", 9100),
        ("plan-applier", 9100),
        ("deployment-watcher", 9100),
        ("cluster-controller", 9100),
        ("client-node-1", 9100),
        ("etcd-1", 2381),
    ] {
        // Every replica: some metrics have no series before their first sample, which only a leader
        // takes.
        for container in stack.containers(service).await? {
            let address = stack.metrics_address(&container, port).await?;
            let scraped = scrape(&address).await;
            let text = scraped.with_context(|| format!("metrics of {service}"))?;
            exported.extend(exported_by(&text));
        }
    }
    let mut used = BTreeSet::new();
    let dashboards = folder.join("grafana/dashboards");
    for entry in std::fs::read_dir(&dashboards)? {
        used.extend(names(&std::fs::read_to_string(entry?.path())?));
    }
    used.extend(names(&std::fs::read_to_string(folder.join("alerts.yaml"))?));
    let unknown: Vec<_> = used.difference(&exported).collect();
    ensure!(unknown.is_empty(), "no container exports {unknown:?}");
    ensure!(
        used.len() > 30,
        "so few metrics are used that little was checked: {used:?}"
    );
    Ok(used.len())
}

/// Returns the names of the series in a `/metrics` answer, also of declared ones without samples.
fn exported_by(text: &str) -> BTreeSet<String> {
    let series = text.lines().filter(|line| !line.starts_with('#'));
    let mut exported: BTreeSet<String> = series.flat_map(names).collect();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let mut words = line.split(' ');
        let (name, kind) = (words.next().unwrap_or_default(), words.next());
        let suffixes: &[&str] = match kind {
            Some("counter") => &["", "_total"],
            Some("histogram") => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        exported.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    exported
}

/// Returns the names of metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
    let names = words.filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)));
    // `kafila_.*_lag` of a pattern ends with an underscore here.
    names
        .filter(|word| !word.ends_with('_'))
        .map(str::to_owned)
        .collect()
}

async fn scrape(address: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_metrics_are_found_in_queries() {
        let query =
            r#"sum(rate(kafila_a_b_total[1m])) / etcd_c{x="y"} or {__name__=~"kafila_.*_lag"}"#;
        let found: Vec<_> = names(query).into_iter().collect();
        assert_eq!(found, ["etcd_c", "kafila_a_b_total"]);
    }
}
