//! Requests over HTTP: time limits, retries with backoff, and the answer.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::error::{Error, ErrorResponse};
use crate::settings::{Backoff, PER_MIB, Settings};

/// Largest body of an answer: a page of a list has 1000 keys of 1 KiB at most.
const MAX_ANSWER_BYTES: u64 = 4 << 20;
/// Time for a connection with its handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A signed request.
pub(crate) struct Request<'a> {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<&'a [u8]>,
}

/// An answer of status 2xx, or 404.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) etag: Option<String>,
    pub(crate) length: Option<u64>,
    pub(crate) body: String,
}

/// Sends requests to one endpoint.
pub(crate) struct Sender {
    agent: ureq::Agent,
    pub(crate) host: String,
    timeout: Duration,
    backoff: Backoff,
}

impl Sender {
    /// # Errors
    /// The authorities cannot be read.
    pub(crate) fn build(settings: &Settings, host: String) -> Result<Self, Error> {
        let roots = roots(settings.ca_file.as_deref()).map_err(Error::Settings)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(roots)
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            // A redirect names another region, for which the signature is wrong.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .user_agent("kafila")
            .build();
        Ok(Self {
            agent: config.new_agent(),
            host,
            timeout: settings.timeout,
            backoff: settings.backoff,
        })
    }

    /// Sends until an answer comes that a repetition would not change, or the attempts are used up.
    ///
    /// Requests must be idempotent: an attempt without an answer may have had its effect.
    pub(crate) fn send(&self, request: &Request<'_>) -> Result<Answer, Error> {
        let mut delay = self.backoff.first;
        let mut attempt = 1;
        loop {
            let (error, may_pass) = match self.send_once(request) {
                Ok(answer) => match refusal(&answer) {
                    None => return Ok(answer),
                    Some(refusal) => {
                        let may_pass = refusal.may_pass();
                        (Error::Refused(refusal), may_pass)
                    }
                },
                Err(error) => {
                    let may_pass = may_pass(&error);
                    let host = self.host.clone();
                    let cause = error.to_string();
                    (Error::NoAnswer { host, cause }, may_pass)
                }
            };
            if !may_pass || attempt >= self.backoff.attempts {
                return Err(error);
            }
            std::thread::sleep(delay);
            delay = delay.saturating_mul(2);
            attempt += 1;
        }
    }

    fn send_once(&self, request: &Request<'_>) -> Result<Answer, ureq::Error> {
        let mut builder = http::Request::builder()
            .method(request.method)
            .uri(&request.url);
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        let mebibytes = request.body.map_or(0, |body| body.len().div_ceil(1 << 20));
        let mebibytes = u32::try_from(mebibytes).unwrap_or(u32::MAX);
        let timeout = self.timeout + PER_MIB.saturating_mul(mebibytes);
        let mut response = match request.body {
            Some(body) => {
                let request = self.agent.configure_request(builder.body(body)?);
                self.agent
                    .run(request.timeout_global(Some(timeout)).build())?
            }
            None => {
                let request = self.agent.configure_request(builder.body(())?);
                self.agent
                    .run(request.timeout_global(Some(timeout)).build())?
            }
        };
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let etag = header("etag");
        let length = header("content-length").and_then(|text| text.parse().ok());
        let status = response.status().as_u16();
        let body = response.body_mut().with_config();
        let body = body
            .limit(MAX_ANSWER_BYTES)
            .lossy_utf8(true)
            .read_to_string()?;
        Ok(Answer {
            status,
            etag,
            length,
            body,
        })
    }
}

/// Returns the refusal in an answer. The completion of an upload is refused in the body of a success.
fn refusal(answer: &Answer) -> Option<ErrorResponse> {
    let is_success = (200..300).contains(&answer.status);
    let is_error = answer.body.contains("<Error>");
    (!is_success || is_error).then(|| ErrorResponse::read(answer.status, &answer.body))
}

/// Returns whether a failure without an answer may pass: connections may, certificates do not.
fn may_pass(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Io(error) => error.kind() != io::ErrorKind::InvalidData,
        ureq::Error::Timeout(_) | ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
        _ => false,
    }
}

/// Returns the authorities of a file, or of the machine.
fn roots(ca_file: Option<&Path>) -> Result<RootCerts, String> {
    let (found, source) = match ca_file {
        Some(path) => {
            let found = rustls_native_certs::load_certs_from_paths(Some(path), None);
            (found, path.display().to_string())
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            (found, "the certificates of this machine".to_owned())
        }
    };
    if let (true, Some(error)) = (ca_file.is_some(), found.errors.first()) {
        return Err(format!("cannot read authorities from {source}: {error}"));
    }
    let owned = |der: &rustls::pki_types::CertificateDer<'_>| Certificate::from_der(der).to_owned();
    let certificates: Vec<Certificate<'static>> = found.certs.iter().map(owned).collect();
    Ok(RootCerts::new_with_certs(&certificates))
}
