//! Stand-in of the OpenTelemetry collector, which no package of Debian has: it listens where the
//! collector's configuration says, accepts what has a pipeline, and serves counts of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::collector_config::CollectorConfig;
use crate::collector::Collector;

/// Counts of spans, under the name that the collector's connector `spanmetrics` gives them.
pub const SPANS: &str = "traces_span_metrics_calls_total";

/// Counts of log lines; the collector itself has no such metric.
pub const LINES: &str = "stand_in_log_lines_total";

/// Serves until the process ends.
///
/// # Errors
/// The collector would refuse the configuration, or an address is in use.
pub async fn serve(config: &Path) -> Result<()> {
    let config = CollectorConfig::read(config)?;
    let collector = Collector::listen(&config.otlp, config.signals()).await?;
    let scrapes = TcpListener::bind(&config.metrics).await?;
    println!("listening on {} and {}", config.otlp, config.metrics);
    loop {
        let (stream, _) = scrapes.accept().await?;
        if let Err(error) = answer(stream, &exposition(&collector)).await {
            eprintln!("scrape: {error:#}");
        }
    }
}

async fn answer(mut stream: TcpStream, text: &str) -> Result<()> {
    // A scrape has no body, and its head fits into one packet.
    let mut request = [0; 4096];
    let read = stream.read(&mut request).await?;
    request[..read]
        .starts_with(b"GET /metrics ")
        .then_some(())
        .context("not a scrape")?;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    Ok(())
}

fn exposition(collector: &Collector) -> String {
    let mut text = String::new();
    add(&mut text, SPANS, &collector.spans_by_service());
    add(&mut text, LINES, &collector.lines_by_service());
    text
}

fn add(text: &mut String, name: &str, counts: &BTreeMap<String, u64>) {
    let _ = writeln!(text, "# TYPE {name} counter");
    for (service, count) in counts {
        let _ = writeln!(text, "{name}{{service_name={service:?}}} {count}");
    }
}
