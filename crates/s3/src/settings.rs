//! Settings of a bucket: endpoint, region, authorities, retries.

use std::path::PathBuf;
use std::time::Duration;

/// Retries of a request that failed for a reason that may pass.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// Requests in all, 1 or more.
    pub attempts: u32,
    /// Delay before the second request; it doubles from then on.
    pub first: Duration,
}

impl Default for Backoff {
    /// Five requests within about 8 s: longer outages are left to the caller's own schedule.
    fn default() -> Self {
        Self {
            attempts: 5,
            first: Duration::from_millis(500),
        }
    }
}

/// The way to a bucket.
#[derive(Clone, Debug)]
pub struct Settings {
    /// URL of an S3-compatible store, `https://host[:port]`; `None` is Amazon's of the region.
    pub endpoint: Option<String>,
    pub region: String,
    /// Authorities (PEM) of the endpoint's certificate; `None` is those of the machine.
    pub ca_file: Option<PathBuf>,
    /// Accept an `http` endpoint beyond loopback.
    pub allow_plaintext: bool,
    /// Time for a request without its body. Each MiB of the body adds [`PER_MIB`].
    pub timeout: Duration,
    pub backoff: Backoff,
}

/// Allows for 64 KiB per second.
pub(crate) const PER_MIB: Duration = Duration::from_secs(16);

impl Settings {
    /// Returns the settings of Amazon's S3 in `region`.
    pub fn new(region: impl Into<String>) -> Self {
        Self {
            endpoint: None,
            region: region.into(),
            ca_file: None,
            allow_plaintext: false,
            timeout: Duration::from_secs(30),
            backoff: Backoff::default(),
        }
    }

    /// Returns the endpoint's URL.
    ///
    /// # Errors
    /// The endpoint is no URL of a host, or is plaintext beyond loopback.
    pub(crate) fn url(&self) -> Result<String, String> {
        let Some(endpoint) = &self.endpoint else {
            // China's partition has a domain of its own.
            let domain = if self.region.starts_with("cn-") {
                "amazonaws.com.cn"
            } else {
                "amazonaws.com"
            };
            return Ok(format!("https://s3.{}.{domain}", self.region));
        };
        let uri: http::Uri = endpoint
            .parse()
            .map_err(|error| format!("endpoint {endpoint:?} is no URL: {error}"))?;
        let host = uri.host().unwrap_or_default();
        match uri.scheme_str() {
            Some("https") if !host.is_empty() => Ok(endpoint.clone()),
            Some("http") if self.allow_plaintext || is_loopback(host) => Ok(endpoint.clone()),
            Some("http") => Err(format!(
                "endpoint {endpoint:?} is plaintext, and snapshots hold every secret of the cluster: \
                 use https, or accept plaintext explicitly"
            )),
            _ => Err(format!(
                "endpoint {endpoint:?} has no scheme http or https: want https://HOST[:PORT]"
            )),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let parsed: Result<std::net::IpAddr, _> = address.parse();
    host == "localhost" || parsed.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(endpoint: &str) -> Result<String, String> {
        let mut settings = Settings::new("eu-central-1");
        settings.endpoint = Some(endpoint.to_owned());
        settings.url()
    }

    #[test]
    fn amazons_endpoint_follows_from_the_region() {
        let of = |region: &str| Settings::new(region).url().unwrap();
        assert_eq!(of("eu-west-1"), "https://s3.eu-west-1.amazonaws.com");
        assert_eq!(of("cn-north-1"), "https://s3.cn-north-1.amazonaws.com.cn");
    }

    #[test]
    fn plaintext_is_for_loopback() {
        for accepted in [
            "https://s3.test",
            "http://127.0.0.1:9000",
            "http://[::1]:9000",
        ] {
            assert_eq!(url(accepted).as_deref(), Ok(accepted));
        }
        assert!(url("http://minio:9000").unwrap_err().contains("plaintext"));
        for bad in ["minio:9000", "ftp://x", "a b"] {
            assert!(url(bad).unwrap_err().contains(bad), "{bad}");
        }
        let mut settings = Settings::new("r");
        settings.endpoint = Some("http://minio:9000".to_owned());
        settings.allow_plaintext = true;
        assert!(settings.url().is_ok());
    }
}
