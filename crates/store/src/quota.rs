//! The quota of a member of etcd before 3.6, from its metrics: its status does not have it.
//!
//! Without TLS etcd serves metrics over HTTP/1 only, with TLS over HTTP/2 as well, which is what the
//! connections of gRPC negotiate.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use model::etcd::Quota;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tonic::body::Body;
use tonic::codegen::http::{Request, Uri};
use tonic::transport::Channel;
use tower::{BoxError, Service as _, ServiceExt as _};
use tracing::debug;

/// The quota changes only when the member restarts.
const KNOWN_FOR: Duration = Duration::from_secs(10 * 60);
/// The pause after a failure.
const UNKNOWN_FOR: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(3);
/// The metrics of a busy member take some 150 KB.
const MAX_BYTES: usize = 4 << 20;
const METRIC: &str = "etcd_server_quota_backend_bytes ";

/// Reads the quota of one member now and then. Clones share the result.
#[derive(Clone)]
pub(crate) struct QuotaReader {
    endpoint: String,
    /// The connection with TLS; `None` without.
    secured: Option<Channel>,
    known: Arc<Mutex<Option<(Instant, Quota)>>>,
}

impl QuotaReader {
    pub(crate) fn new(endpoint: &str, channel: Option<Channel>) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            secured: channel.filter(|_| endpoint.starts_with("https://")),
            known: Arc::default(),
        }
    }

    /// Returns the quota; [`Quota::Unreported`] if the metrics cannot be read.
    pub(crate) async fn quota(&self) -> Quota {
        if let Some((at, quota)) = *self.lock() {
            let fresh_for = match quota {
                Quota::Unreported => UNKNOWN_FOR,
                _ => KNOWN_FOR,
            };
            if at.elapsed() < fresh_for {
                return quota;
            }
        }
        let quota = match timeout(TIMEOUT, self.metrics()).await {
            Ok(Ok(metrics)) => parse(&metrics),
            Ok(Err(error)) => {
                debug!(endpoint = self.endpoint, %error, "cannot read the metrics of etcd");
                Quota::Unreported
            }
            Err(_) => Quota::Unreported,
        };
        *self.lock() = Some((Instant::now(), quota));
        quota
    }

    async fn metrics(&self) -> Result<String, BoxError> {
        let uri: Uri = self.endpoint.parse()?;
        let Some(mut channel) = self.secured.clone() else {
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
            let mut stream = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await?;
            let request = format!("GET /metrics HTTP/1.0\r\nHost: {host}\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = Vec::new();
            stream
                .take(MAX_BYTES as u64)
                .read_to_end(&mut answer)
                .await?;
            return Ok(String::from_utf8_lossy(&answer).into_owned());
        };
        let request = Request::get("/metrics").body(Body::empty())?;
        let answer = channel.ready().await?.call(request).await?;
        let body = Limited::new(answer.into_body(), MAX_BYTES)
            .collect()
            .await?;
        Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Quota)>> {
        // The value is replaced as a whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers are in the form of Go: `1.6777216e+07`.
fn parse(metrics: &str) -> Quota {
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(METRIC));
    let bytes = value.and_then(|value| value.trim().parse::<f64>().ok());
    // Whole and without an exponent.
    let whole = bytes.and_then(|bytes| format!("{bytes:.0}").parse::<u64>().ok());
    match whole {
        Some(bytes) if bytes > 0 => Quota::Bytes(bytes),
        _ => Quota::Unreported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quota_is_found_among_the_metrics() {
        let metrics = "# TYPE etcd_server_quota_backend_bytes gauge\n\
                       etcd_server_quota_backend_bytes 1.6777216e+07\nother 3\n";
        assert_eq!(parse(metrics), Quota::Bytes(16_777_216));
        for text in [
            "",
            "etcd_server_quota_backend_bytes 0\n",
            "HTTP/1.0 404 Not Found\r\n",
        ] {
            assert_eq!(parse(text), Quota::Unreported);
        }
    }
}
