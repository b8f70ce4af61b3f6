//! Transport of a process: mutual TLS, or plaintext for development.
//!
//! With TLS every connection uses it, whatever the scheme of an address, so no address can lead to
//! plaintext.

use std::net::SocketAddr;

use identity::{Identity, Role};
use tls::{Connector, Credentials, Expect, Files, KeyPair};
use tokio_util::sync::CancellationToken;

use crate::channel::{self, BadAddress, TracedChannel};
use crate::config::ConfigError;
use crate::metrics::Metrics;
use crate::settings::{ListenConfig, TlsConfig};

/// How a process accepts and opens connections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Transport {
    secured: Option<Secured>,
}

#[derive(Clone, Debug)]
struct Secured {
    credentials: Credentials,
    region: String,
    metrics: tls::Metrics,
}

impl Transport {
    /// Plaintext, for development and tests.
    pub const PLAINTEXT: Self = Self { secured: None };

    /// Returns the region of the own certificate; `None` in plaintext.
    pub(crate) fn region(&self) -> Option<&str> {
        self.secured.as_ref().map(|secured| secured.region.as_str())
    }

    /// Loads the certificate of a process of this role; plaintext without files.
    ///
    /// # Errors
    /// Some files are missing from the configuration, a file cannot be used, or the certificate is for
    /// another role or region.
    pub fn open(config: &TlsConfig, role: Role) -> Result<Self, ConfigError> {
        let invalid = |problem: String| ConfigError::Invalid {
            service: role.to_string(),
            problem,
        };
        let files = match (&config.ca_file, &config.cert_file, &config.key_file) {
            (None, None, None) => return Ok(Self::PLAINTEXT),
            (Some(_), Some(_), Some(_)) if config.insecure => {
                let problem = "`tls.insecure` is set beside `tls.ca_file`: want one of them";
                return Err(invalid(problem.to_owned()));
            }
            (Some(ca), Some(cert), Some(key)) => Files {
                ca: Some(ca.clone()),
                own: Some(KeyPair {
                    cert: cert.clone(),
                    key: key.clone(),
                }),
            },
            _ => {
                let problem = "`tls` needs all of `ca_file`, `cert_file` and `key_file`, which \
                               `kafila tls ca create` and `kafila tls cert create` make";
                return Err(invalid(problem.to_owned()));
            }
        };
        // Also checks the region.
        let expected = Identity::new(role, &config.region, "any")
            .map_err(|error| invalid(format!("`tls.region`: {error}")))?;
        let region = config.region.clone();
        let is_ours = move |der: &[u8]| check_own(der, &expected);
        let verify = tls::Verify::Servers;
        let credentials = Credentials::load_with("services", files, verify, is_ours)
            .map_err(|error| invalid(crate::run::chain(&error)))?;
        Ok(Self {
            secured: Some(Secured {
                credentials,
                region,
                metrics: tls::Metrics::default(),
            }),
        })
    }

    /// Returns whether connections use TLS.
    pub const fn is_secured(&self) -> bool {
        self.secured.is_some()
    }

    /// Returns what a server needs for handshakes; `None`: plaintext.
    pub(crate) fn server(&self) -> Option<(&Credentials, &tls::Metrics)> {
        let secured = self.secured.as_ref()?;
        Some((&secured.credentials, &secured.metrics))
    }

    /// Returns a channel to a process of `role` at `address`, which connects when first used and again
    /// whenever it has to. With TLS the server proves that it has the role, in this region.
    ///
    /// # Errors
    /// `address` is not a URI, or it needs TLS and this process has no certificate.
    pub fn connect_lazy(&self, address: &str, role: Role) -> Result<TracedChannel, BadAddress> {
        let Some(secured) = &self.secured else {
            return channel::connect_lazy(address);
        };
        let name = Identity::new(role, &secured.region, "any")
            .ok()
            .and_then(|identity| tls::ServerName::try_from(identity.dns_name()).ok())
            .ok_or_else(|| BadAddress::name(address))?;
        let connector = Connector::new(secured.credentials.clone(), Expect::Name(name));
        channel::connect_lazy_with(&with_tls(address), connector)
    }

    /// Returns the address to announce, given the one that was bound: with the scheme of this
    /// transport.
    ///
    /// # Errors
    /// Every interface was bound, and `listen.advertise` names no address to dial.
    pub fn advertised(
        &self,
        listen: &ListenConfig,
        bound: SocketAddr,
    ) -> Result<String, ConfigError> {
        let address = listen.advertised(bound)?;
        Ok(if self.is_secured() {
            with_tls(&address)
        } else {
            address
        })
    }

    /// Registers metrics, and reloads the certificates of this transport and `other` ones until `stop`.
    pub async fn keep_fresh(
        self,
        other: Option<Credentials>,
        metrics: Metrics,
        stop: CancellationToken,
    ) {
        let (own, shown) = match self.secured {
            Some(secured) => (Some(secured.credentials), secured.metrics),
            None => (None, tls::Metrics::default()),
        };
        if own.is_some() || other.is_some() {
            metrics.register(|registry| shown.register(registry));
        }
        let refreshing = own
            .into_iter()
            .chain(other)
            .map(|credentials| credentials.keep_fresh(shown.clone(), stop.clone()));
        futures::future::join_all(refreshing).await;
    }
}

/// Returns `address` with the scheme of TLS.
fn with_tls(address: &str) -> String {
    match address.strip_prefix("http://") {
        Some(rest) => format!("https://{rest}"),
        None => address.to_owned(),
    }
}

fn check_own(der: &[u8], expected: &Identity) -> Result<(), String> {
    let identity = Identity::from_certificate(der).map_err(|error| crate::run::chain(&error))?;
    if (identity.role(), identity.region()) == (expected.role(), expected.region()) {
        return Ok(());
    }
    Err(format!(
        "it is for a {} in region {:?}, and this process is a {} in region {:?} (`tls.region`)",
        identity.role(),
        identity.region(),
        expected.role(),
        expected.region(),
    ))
}
