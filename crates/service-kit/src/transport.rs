//! Transport of a process: mutual TLS, or plaintext for development.
//!
//! With TLS every connection uses it, independent of the scheme of an address, so no address can
//! lead to plaintext.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use identity::{Identity, Role};
use tls::{Clients, Connector, Credentials, Expect, Files, KeyPair};
use tokio_util::sync::CancellationToken;

use crate::channel::{self, BadAddress, TracedChannel};
use crate::config::ConfigError;
use crate::metrics::Metrics;
use crate::settings::{ListenConfig, TlsConfig};

/// The way in which a process accepts and opens connections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Transport {
    secured: Option<Secured>,
}

#[derive(Clone, Debug)]
struct Secured {
    credentials: Credentials,
    region: String,
    /// The identity in the certificate of the start; `None`: the process has no certificate yet.
    identity: Option<Identity>,
    metrics: tls::Metrics,
}

impl Transport {
    /// Plaintext, for development and tests.
    pub const PLAINTEXT: Self = Self { secured: None };

    /// Returns the region of the own certificate; `None` in plaintext.
    pub(crate) fn region(&self) -> Option<&str> {
        self.secured.as_ref().map(|secured| secured.region.as_str())
    }

    /// Returns the identity in the own certificate; `None` in plaintext, and without one.
    pub fn identity(&self) -> Option<&Identity> {
        self.secured.as_ref()?.identity.as_ref()
    }

    /// Loads the certificate of a process of this role; plaintext without files.
    ///
    /// # Errors
    /// Some files are missing from the configuration, a file cannot be used, the certificate is for
    /// another role or region, or plaintext is not asked for or leaves this machine.
    pub fn open(
        config: &TlsConfig,
        listen: &ListenConfig,
        role: Role,
    ) -> Result<Self, ConfigError> {
        Self::open_with(config, listen, role, None)
    }

    /// As [`Self::open`]; with the file of a CA of nodes, its certificates are accepted, and callers
    /// without a certificate as well: nodes that join. Their rights are those of [`identity::Peer::Anonymous`].
    ///
    /// # Errors
    /// Those of [`Self::open`], and a CA of nodes in plaintext.
    pub fn open_with(
        config: &TlsConfig,
        listen: &ListenConfig,
        role: Role,
        node_ca: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let invalid = |problem: String| ConfigError::Invalid {
            service: role.service().unwrap_or(role.as_str()).to_owned(),
            problem,
        };
        let files = match (&config.ca_file, &config.cert_file, &config.key_file) {
            (None, None, None) if node_ca.is_some() => {
                let problem = "`node_ca_cert_file` is set without `tls.ca_file`, `tls.cert_file` and \
                               `tls.key_file`: set these, or leave it out";
                return Err(invalid(problem.to_owned()));
            }
            (None, None, None) => {
                config.check_plaintext(listen).map_err(invalid)?;
                return Ok(Self::PLAINTEXT);
            }
            (Some(_), Some(_), Some(_))
                if config.insecure || config.dangerously_expose_plaintext =>
            {
                let problem = "`tls.insecure` or `tls.dangerously_expose_plaintext` is set beside \
                               `tls.ca_file`: want certificates or plaintext";
                return Err(invalid(problem.to_owned()));
            }
            (Some(ca), Some(cert), Some(key)) => Files {
                ca: Some(ca.clone()),
                further_ca: node_ca.map(Path::to_owned),
                own: Some(KeyPair {
                    cert: cert.clone(),
                    key: key.clone(),
                }),
                verify_own: is_service(role),
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
        let own = Arc::new(OnceLock::new());
        let first = Arc::clone(&own);
        let is_ours = move |der: &[u8]| check_own(der, &expected, &first);
        let verify = tls::Verify::Servers;
        let clients = match node_ca {
            Some(_) => Clients::Any,
            None => Clients::Certified,
        };
        let credentials = Credentials::load_with("services", files, verify, clients, is_ours)
            .map_err(|error| invalid(with_settings(config, node_ca, &error)))?;
        // The check of the first load has set it.
        let identity = own.get().cloned();
        let identity = identity.ok_or_else(|| invalid("`tls.cert_file` was not checked".into()))?;
        Ok(Self {
            secured: Some(Secured {
                credentials,
                region: identity.region().to_owned(),
                identity: Some(identity),
                metrics: tls::Metrics::default(),
            }),
        })
    }

    /// Returns the transport of a process that has no certificate yet. It verifies servers by the
    /// authorities in `ca_file`, and cannot serve.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn without_certificate(ca_file: &Path, region: &str) -> Result<Self, tls::Error> {
        let files = Files {
            ca: Some(ca_file.to_owned()),
            ..Files::default()
        };
        Ok(Self {
            secured: Some(Secured {
                credentials: Credentials::load("services", files)?,
                region: region.to_owned(),
                identity: None,
                metrics: tls::Metrics::default(),
            }),
        })
    }

    /// Returns whether connections use TLS.
    pub const fn is_secured(&self) -> bool {
        self.secured.is_some()
    }

    /// Returns the address as this transport dials it: with `https://` if it uses TLS.
    pub fn dialed(&self, address: &str) -> String {
        match self.is_secured() {
            true => with_tls(address),
            false => address.to_owned(),
        }
    }

    /// Returns a server's configuration for handshakes; `None`: plaintext.
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
        let expected = Identity::new(role, &secured.region, "any");
        let dns_name = expected.ok().map(|expected| expected.dns_name());
        let connector = secured.connector(address, dns_name)?;
        channel::connect_lazy_with(&with_tls(address), connector)
    }

    /// Returns the connector to one process, which proves the role and this name; `None`: plaintext.
    ///
    /// # Errors
    /// `address` needs TLS and this process has none, or the name is no DNS label.
    pub(crate) fn connector_to(
        &self,
        address: &str,
        role: Role,
        name: &str,
    ) -> Result<Option<Connector>, BadAddress> {
        let Some(secured) = &self.secured else {
            return match address.starts_with("https://") {
                true => Err(BadAddress::NeedsTls {
                    address: address.to_owned(),
                }),
                false => Ok(None),
            };
        };
        let expected = Identity::new(role, &secured.region, name);
        let own_name = expected.ok().and_then(|expected| expected.own_dns_name());
        secured.connector(address, own_name).map(Some)
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
        Ok(self.dialed(&listen.advertised(bound)?))
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

impl Secured {
    /// Returns a connector to the server with this DNS name in its certificate.
    fn connector(&self, address: &str, dns_name: Option<String>) -> Result<Connector, BadAddress> {
        let name = dns_name
            .and_then(|name| tls::ServerName::try_from(name).ok())
            .ok_or_else(|| BadAddress::name(address))?;
        Ok(Connector::new(self.credentials.clone(), Expect::Name(name)))
    }
}

/// Returns `address` with the scheme of TLS.
fn with_tls(address: &str) -> String {
    match address.strip_prefix("http://") {
        Some(rest) => format!("https://{rest}"),
        None => address.to_owned(),
    }
}

/// Returns whether peers verify the process as a server and as a client, both with its own CA. The CA of
/// nodes has issued the certificates of nodes that have joined with a token; the others do not serve.
fn is_service(role: Role) -> bool {
    match role {
        Role::Gateway
        | Role::Broker
        | Role::Worker
        | Role::Applier
        | Role::Watcher
        | Role::Controller => true,
        Role::Node | Role::Operator | Role::Monitor | Role::Etcd | Role::EtcdClient => false,
    }
}

/// Returns an error of the files with the settings that name them.
fn with_settings(config: &TlsConfig, node_ca: Option<&Path>, error: &tls::Error) -> String {
    let settings = [
        ("`tls.ca_file`", config.ca_file.as_deref()),
        ("`tls.cert_file`", config.cert_file.as_deref()),
        ("`tls.key_file`", config.key_file.as_deref()),
        ("`node_ca_cert_file`", node_ca),
    ];
    let paths = error.paths();
    let is_named = |path: Option<&Path>| path.is_some_and(|path| paths.contains(&path));
    let names = settings.iter().filter(|(_, path)| is_named(*path));
    let names: Vec<&str> = names.map(|(name, _)| *name).collect();
    let chain = crate::run::chain(error);
    match names.is_empty() {
        true => chain,
        false => format!("{}: {chain}", names.join(", ")),
    }
}

/// Checks the process's own certificate: its role and region are those of the process, and a node stays
/// the node that it is at the first check, which sets `first`.
fn check_own(der: &[u8], expected: &Identity, first: &OnceLock<Identity>) -> Result<(), String> {
    let identity = Identity::from_certificate(der).map_err(|error| crate::run::chain(&error))?;
    if (identity.role(), identity.region()) != (expected.role(), expected.region()) {
        return Err(format!(
            "it is for a {} in region {:?}, and this process is a {} in region {:?} (`tls.region`)",
            identity.role(),
            identity.region(),
            expected.role(),
            expected.region(),
        ));
    }
    let first = first.get_or_init(|| identity.clone());
    if identity.role() == Role::Node && identity.name() != first.name() {
        return Err(format!(
            "it is for node {}, and this process runs as node {}",
            identity.name(),
            first.name()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rcgen::string::Ia5String;
    use rcgen::{CertificateParams, KeyPair as RcgenKey, SanType};

    use super::*;

    fn certificate(role: Role, name: &str) -> Vec<u8> {
        let identity = Identity::new(role, "global", name).unwrap();
        let mut params = CertificateParams::new(vec![identity.dns_name()]).unwrap();
        let uri = SanType::URI(Ia5String::try_from(identity.uri()).unwrap());
        params.subject_alt_names.push(uri);
        let key = RcgenKey::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn a_renewed_certificate_keeps_the_node_and_may_rename_a_service() {
        for (role, is_accepted) in [(Role::Node, false), (Role::Worker, true)] {
            let expected = Identity::new(role, "global", "any").unwrap();
            let first = OnceLock::new();
            let check = |name: &str| check_own(&certificate(role, name), &expected, &first);
            assert_eq!(check("n1"), Ok(()));
            assert_eq!(check("n1"), Ok(()));
            let other = check("n2");
            assert_eq!(other.is_ok(), is_accepted, "{role}: {other:?}");
            assert_eq!(first.get().unwrap().name(), "n1");
        }
    }
}
