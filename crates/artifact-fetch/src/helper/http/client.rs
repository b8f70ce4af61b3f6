//! Requests: TLS, timeouts, redirects, and the failures that may pass.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::http::StatusCode;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use url::Url;

use crate::wire::Http;

pub(super) type Response = ::http::Response<ureq::Body>;

/// Time for a connection with its handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Redirects of one request, at most. Source: the limit of Go's client, which sources are made for.
const REDIRECTS_MAX: u32 = 10;

/// A request without its content.
#[derive(Debug)]
pub(super) struct HttpFailure {
    pub(super) message: String,
    pub(super) may_pass: bool,
}

impl HttpFailure {
    pub(super) fn passing(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            may_pass: true,
        }
    }

    pub(super) fn lasting(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            may_pass: false,
        }
    }

    pub(super) fn status(status: StatusCode) -> Self {
        let hint = match status.as_u16() {
            401 | 403 => "; check `headers` and the credentials of the source",
            404 | 410 => "; check the source",
            _ => "",
        };
        Self {
            message: format!("the server answered {status}{hint}"),
            may_pass: status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429),
        }
    }
}

pub(super) struct Client {
    agent: ureq::Agent,
    insecure: bool,
}

impl Client {
    pub(super) fn new(work: &Http) -> Result<Self, HttpFailure> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
        if work.insecure {
            tls = tls.disable_verification(true);
        } else if work.url.starts_with("https:") || work.list.is_some() {
            tls = tls.root_certs(roots());
        }
        let stall = Duration::from_millis(work.stall_ms);
        let config = ureq::Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_send_request(Some(stall))
            .timeout_recv_response(Some(stall))
            .timeout_per_read(Some(stall))
            .accept_encoding("identity")
            .user_agent("kafila")
            .build();
        Ok(Self {
            agent: config.new_agent(),
            insecure: work.insecure,
        })
    }

    /// Sends GET and follows redirects. `conditions` go to every host, `headers` to the first.
    pub(super) fn get(
        &self,
        url: &str,
        headers: &BTreeMap<String, String>,
        conditions: &[(&'static str, String)],
    ) -> Result<Response, HttpFailure> {
        let bad = |_| HttpFailure::lasting("the source is not a URL");
        let mut url = Url::parse(url).map_err(bad)?;
        let first = url.origin();
        for _ in 0..=REDIRECTS_MAX {
            let mut request = ::http::Request::get(bare(&url));
            for (name, value) in conditions {
                request = request.header(*name, value);
            }
            if url.origin() == first {
                for (name, value) in headers {
                    request = request.header(name, value);
                }
                let has_own = headers
                    .keys()
                    .any(|it| it.eq_ignore_ascii_case("authorization"));
                if let Some(basic) = basic(&url).filter(|_| !has_own) {
                    request = request.header("authorization", basic);
                }
            }
            let request = request
                .body(())
                .map_err(|_| HttpFailure::lasting("a header is invalid: check `headers`"))?;
            let response = self.agent.run(request).map_err(|error| refusal(&error))?;
            let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            if !is_redirect {
                return Ok(response);
            }
            url = self.redirected(&url, &response)?;
        }
        Err(HttpFailure::lasting(format!(
            "the server redirects more than {REDIRECTS_MAX} times"
        )))
    }

    fn redirected(&self, from: &Url, response: &Response) -> Result<Url, HttpFailure> {
        let location = response.headers().get("location");
        let location = location.and_then(|value| value.to_str().ok());
        let to = location.and_then(|location| from.join(location).ok());
        let to = to.ok_or_else(|| HttpFailure::lasting("the server redirects to no URL"))?;
        match to.scheme() {
            "https" => Ok(to),
            "http" if from.scheme() == "http" || self.insecure => Ok(to),
            other => Err(HttpFailure::lasting(format!(
                "the server redirects from {} to {other:?}, which is not followed",
                from.scheme()
            ))),
        }
    }
}

/// Returns a URL as it is sent: without a user and a fragment.
fn bare(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    url.into()
}

/// Returns the header of the user in a URL.
fn basic(url: &Url) -> Option<String> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decoded = |text| percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    let password = decoded(url.password().unwrap_or_default());
    let pair = format!("{}:{password}", decoded(url.username()));
    Some(format!(
        "Basic {}",
        data_encoding::BASE64.encode(pair.as_bytes())
    ))
}

/// Describes a failure without its URL, whose query may have secrets.
pub(super) fn refusal(error: &ureq::Error) -> HttpFailure {
    match error {
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            HttpFailure::lasting(format!("TLS: {}", cause(error)))
        }
        ureq::Error::Io(error) => HttpFailure::passing(format!("no connection: {}", cause(error))),
        ureq::Error::Timeout(what) => HttpFailure::passing(format!("timeout: {what}")),
        ureq::Error::HostNotFound => HttpFailure::passing("the host is not found"),
        ureq::Error::ConnectionFailed => HttpFailure::passing("no connection"),
        ureq::Error::BadUri(_) => HttpFailure::lasting("the source is not a URL"),
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => {
            let hint = "check the certificate, or set `insecure`";
            HttpFailure::lasting(format!("TLS: {error}; {hint}"))
        }
        // Of the protocol: a proxy or server in distress.
        _ => HttpFailure::passing(format!("no answer: {error}")),
    }
}

/// Returns the text of an error of a connection; one of the library is inside of it.
pub(super) fn cause(error: &io::Error) -> String {
    error.to_string()
}

/// Returns the authorities of the machine.
fn roots() -> RootCerts {
    let found = rustls_native_certs::load_native_certs();
    let owned = |der: &rustls::pki_types::CertificateDer<'_>| Certificate::from_der(der).to_owned();
    let certificates: Vec<Certificate<'static>> = found.certs.iter().map(owned).collect();
    RootCerts::new_with_certs(&certificates)
}
