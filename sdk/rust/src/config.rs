//! Settings of a client: gateways, TLS, timeouts and retries.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use backoff::Backoff;
use identity::{Identity, Role, is_reserved};
use tls::{Clients, Connector, Credentials, Expect, Files, KeyPair, ServerName, Verify};
use tonic::metadata::MetadataMap;

use crate::address::{self, InvalidAddress};

/// Adds metadata to each attempt of each call, for example the caller's trace.
pub type MetadataSource = Arc<dyn Fn(&mut MetadataMap) + Send + Sync>;

/// Settings of a [`crate::Client`].
#[derive(Clone)]
pub struct Config {
    /// Gateways such as `http://10.0.0.1:4646`, in the order of preference.
    pub gateways: Vec<String>,
    /// Used for `https://` addresses only.
    pub tls: Tls,
    /// Namespace of the helpers of the client; RPCs name theirs in the request.
    pub namespace: String,
    /// For one call with all its attempts.
    pub timeout: Duration,
    /// For one attempt of a call that may be repeated, before another gateway is asked.
    pub attempt_timeout: Duration,
    pub retry: RetryPolicy,
    pub metadata: Option<MetadataSource>,
}

/// Retries of one call. Delays double and are drawn from the upper half of their range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first one included. The defaults take 11 s, enough for a restart.
    pub attempts: u32,
    pub first_delay: Duration,
    /// Also bounds the delay that a gateway advises.
    pub max_delay: Duration,
    /// True if a call waits while no gateway can be reached. A command that a person types should
    /// fail at once.
    pub wait_for_gateway: bool,
}

impl RetryPolicy {
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.first_delay, self.max_delay)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 8,
            first_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
            wait_for_gateway: true,
        }
    }
}

/// Files and names for `https://` addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of the authorities of gateways (PEM). `None`: the system's.
    pub ca_cert: Option<PathBuf>,
    /// The client's certificate (PEM).
    pub client_cert: Option<PathBuf>,
    /// The key of `client_cert` (PEM).
    pub client_key: Option<PathBuf>,
    /// The name in gateways' certificates, such as `gateway.global.kafila`. `None`: the host of the
    /// address.
    ///
    /// A name in the domain `kafila` belongs to one role, which may also be another than `gateway`. With any
    /// other name or host, the role in the certificate is verified, too.
    pub server_name: Option<String>,
    /// Accepts the server of the right name whatever the role in its certificate, if any: a proxy in front
    /// of gateways that ends TLS, or another process of Kafila.
    pub skip_role_check: bool,
    /// Accepts every certificate: a machine on the path can read and change the traffic.
    pub skip_verify: bool,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("no gateway address is set: want at least one, as in http://127.0.0.1:4646")]
    NoGateway,
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    #[error("a client certificate needs its key: set both")]
    CertificateWithoutKey,
    #[error("the server name {0:?} is not a DNS name")]
    ServerName(String),
    #[error("cannot use the files of TLS: {}", chain(.0))]
    Tls(#[source] tls::Error),
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

impl Default for Config {
    fn default() -> Self {
        Self {
            gateways: vec![address::DEFAULT.to_owned()],
            tls: Tls::default(),
            namespace: "default".to_owned(),
            timeout: Duration::from_secs(30),
            attempt_timeout: Duration::from_secs(10),
            retry: RetryPolicy::default(),
            metadata: None,
        }
    }
}

impl Config {
    /// Reads `KAFILA_ADDR` (several addresses with commas), `KAFILA_NAMESPACE` and the files of
    /// [`Tls::from_variables`], each with Nomad's name as the second choice.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&str; 2]| first(&variable, names);
        let mut config = Self {
            tls: Tls::from_variables(&variable),
            ..Self::default()
        };
        if let Some(addresses) = first(["KAFILA_ADDR", "NOMAD_ADDR"]) {
            config.gateways = addresses
                .split(',')
                .map(|text| text.trim().to_owned())
                .collect();
        }
        if let Some(namespace) = first(["KAFILA_NAMESPACE", "NOMAD_NAMESPACE"]) {
            config.namespace = namespace;
        }
        config
    }

    /// Returns the addresses of the gateways as URLs.
    pub(crate) fn urls(&self) -> Result<Vec<String>, ConfigError> {
        let urls: Vec<String> = self
            .gateways
            .iter()
            .map(|text| address::parse(text))
            .collect::<Result<_, _>>()?;
        if urls.is_empty() {
            return Err(ConfigError::NoGateway);
        }
        Ok(urls)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("gateways", &self.gateways)
            .field("tls", &self.tls)
            .field("namespace", &self.namespace)
            .field("timeout", &self.timeout)
            .field("attempt_timeout", &self.attempt_timeout)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// Returns the value of the first variable that is set and not empty.
fn first(variable: impl Fn(&str) -> Option<String>, names: [&str; 2]) -> Option<String> {
    let mut set = names.into_iter().filter_map(variable);
    set.find(|text| !text.is_empty())
}

impl Tls {
    /// Reads `KAFILA_CACERT`, `KAFILA_CLIENT_CERT`, `KAFILA_CLIENT_KEY`, `KAFILA_TLS_SERVER_NAME` and
    /// `KAFILA_SKIP_VERIFY`, each with Nomad's name as the second choice, and
    /// `KAFILA_TLS_SKIP_ROLE_CHECK`.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names| first(&variable, names);
        let is_true = |text: String| !matches!(text.as_str(), "0" | "false" | "f");
        Self {
            ca_cert: first(["KAFILA_CACERT", "NOMAD_CACERT"]).map(PathBuf::from),
            client_cert: first(["KAFILA_CLIENT_CERT", "NOMAD_CLIENT_CERT"]).map(PathBuf::from),
            client_key: first(["KAFILA_CLIENT_KEY", "NOMAD_CLIENT_KEY"]).map(PathBuf::from),
            server_name: first(["KAFILA_TLS_SERVER_NAME", "NOMAD_TLS_SERVER_NAME"]),
            // Nomad verifies no role.
            skip_role_check: first(["KAFILA_TLS_SKIP_ROLE_CHECK"; 2]).is_some_and(is_true),
            skip_verify: first(["KAFILA_SKIP_VERIFY", "NOMAD_SKIP_VERIFY"]).is_some_and(is_true),
        }
    }

    /// Loads the files.
    pub(crate) fn connector(&self) -> Result<Connector, ConfigError> {
        let own = match (&self.client_cert, &self.client_key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some(KeyPair {
                cert: cert.clone(),
                key: key.clone(),
            }),
            _ => return Err(ConfigError::CertificateWithoutKey),
        };
        let files = Files {
            ca: self.ca_cert.clone(),
            own,
            ..Files::default()
        };
        let verify = match self.skip_verify {
            true => Verify::Nothing,
            false => Verify::Servers,
        };
        let clients = Clients::Certified;
        let credentials = Credentials::load_with("gateway", files, verify, clients, |_| Ok(()))
            .map_err(ConfigError::Tls)?;
        let expect = match &self.server_name {
            None => Expect::Host,
            Some(name) => {
                let parsed = ServerName::try_from(name.clone());
                Expect::Name(parsed.map_err(|_| ConfigError::ServerName(name.clone()))?)
            }
        };
        let connector = Connector::new(credentials, expect);
        // Certificates have names of their own role only in this domain.
        let has_role_name = self.server_name.as_deref().is_some_and(is_reserved);
        Ok(
            match self.skip_verify || self.skip_role_check || has_role_name {
                true => connector,
                false => connector.checking(check_gateway),
            },
        )
    }
}

/// Checks that a verified certificate is that of a gateway: any process of the cluster may have one for its
/// own host, and could answer in a gateway's place.
fn check_gateway(der: &[u8]) -> Result<(), String> {
    match Identity::from_certificate(der) {
        Ok(identity) if identity.role() == Role::Gateway => Ok(()),
        Ok(identity) => Err(format!("that of {identity}, not of a gateway")),
        Err(error) => Err(format!("not that of a gateway: {}", chain(&error))),
    }
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject as _;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Config {
        Config::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn variables_name_gateways_namespace_and_files() {
        let config = read(&[
            ("NOMAD_ADDR", "http://n:1"),
            ("KAFILA_ADDR", "http://a:1, b"),
            ("KAFILA_NAMESPACE", ""),
            ("NOMAD_NAMESPACE", "shop"),
            ("KAFILA_CACERT", "ca.pem"),
            ("NOMAD_SKIP_VERIFY", "true"),
            ("KAFILA_TLS_SKIP_ROLE_CHECK", "1"),
        ]);
        assert_eq!(config.urls().unwrap(), ["http://a:1", "http://b:4646"]);
        assert_eq!(config.namespace, "shop");
        assert_eq!(config.tls.ca_cert, Some(PathBuf::from("ca.pem")));
        assert!(config.tls.skip_verify && config.tls.skip_role_check);
        assert_eq!(read(&[]).urls().unwrap(), [address::DEFAULT]);
    }

    #[test]
    fn only_gateways_pass_the_check_of_the_role() {
        let moment = pki::Moment {
            now: 1_700_000_000,
            serial: pki::Serial(1),
        };
        let request = pki::AuthorityRequest {
            common_name: "a CA".to_owned(),
            days: 30,
            is_constrained: false,
            additional_domains: Vec::new(),
        };
        let made = pki::create_authority(&request, moment).unwrap();
        let authority = pki::Authority::read(&made.certificate_pem, &made.key_pem).unwrap();
        let certificate = |role| {
            let request = pki::CertificateRequest {
                identity: Identity::new(role, "eu", "one").unwrap(),
                days: 1,
                dns_names: vec!["kafila.example.com".to_owned()],
                addresses: Vec::new(),
            };
            let issued = authority.issue(&request, moment).unwrap();
            CertificateDer::from_pem_slice(issued.certificate_pem.as_bytes()).unwrap()
        };
        assert_eq!(check_gateway(&certificate(Role::Gateway)), Ok(()));
        let node = check_gateway(&certificate(Role::Worker)).unwrap_err();
        assert_eq!(node, "that of worker one of region eu, not of a gateway");
        // The CA's own has no role, like one of a public CA.
        let foreign = CertificateDer::from_pem_slice(made.certificate_pem.as_bytes()).unwrap();
        let foreign = check_gateway(&foreign).unwrap_err();
        assert!(foreign.starts_with("not that of a gateway: "), "{foreign}");
    }

    #[test]
    fn settings_that_cannot_be_used_are_refused() {
        let none = Config {
            gateways: Vec::new(),
            ..Config::default()
        };
        assert!(matches!(none.urls(), Err(ConfigError::NoGateway)));
        let keyless = Tls {
            client_cert: Some(PathBuf::from("c.pem")),
            ..Tls::default()
        };
        let error = keyless.connector().unwrap_err();
        assert!(matches!(error, ConfigError::CertificateWithoutKey));
        let missing = Tls {
            ca_cert: Some(PathBuf::from("/no/such.pem")),
            ..Tls::default()
        };
        let text = missing.connector().unwrap_err().to_string();
        assert!(text.contains("/no/such.pem"), "{text}");
    }
}
