//! Sections of configuration that services share.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::config::ConfigError;

/// Time for a draining process to finish started work: a little longer than the longest RPC that is
/// not a stream, well below the 30 s after which orchestrators kill.
pub const DEFAULT_SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(10);

/// Connection to etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EtcdConfig {
    /// Addresses of etcd's members, as in `http://10.0.0.1:2379`, or `https://` for TLS; all are
    /// tried.
    #[serde(with = "crate::address::list")]
    pub endpoints: Vec<String>,
    /// Prefix of every key, with a slash at its end. Clusters with different prefixes may share an
    /// etcd.
    pub prefix: String,
    /// Certificates of the authorities that issue the certificates of etcd's members, as PEM; unset:
    /// the system's.
    pub ca_file: Option<PathBuf>,
    /// Client certificate for etcd, as PEM, if etcd asks for one.
    pub cert_file: Option<PathBuf>,
    /// Private key of `cert_file`, as PEM.
    pub key_file: Option<PathBuf>,
    /// User of etcd's authentication; unset: none.
    pub user: Option<String>,
    /// File with the password of `user`, which is read again for each login.
    pub password_file: Option<PathBuf>,
    /// `--quota-backend-bytes` of etcd's members, in bytes, for members that tell it neither in their
    /// status (since 3.6) nor in their metrics. New work is refused before the quota is reached. The
    /// default is etcd's own, 2 GiB.
    pub quota_bytes: u64,
    /// Accepts `http://` endpoints on other machines: data and the password of `user` are sent in
    /// plaintext. For an etcd that is protected by other means.
    pub dangerously_expose_plaintext: bool,
}

impl EtcdConfig {
    /// Returns the problem of `quota_bytes`, for services that refuse work by it; `None`: it is usable.
    pub fn quota_problem(&self) -> Option<&'static str> {
        (self.quota_bytes == 0).then_some(
            "`etcd.quota_bytes` is 0: want --quota-backend-bytes of etcd, 2147483648 by default",
        )
    }

    /// Checks that data for etcd stays on this machine or is encrypted, unless a setting accepts the
    /// danger: this one's or, for a whole cluster in plaintext, that of `tls`.
    ///
    /// # Errors
    /// See above; the problem names the setting and the fix.
    pub fn check_plaintext(&self, tls: &TlsConfig) -> Result<(), String> {
        let mut exposed = self.endpoints.iter().filter(|one| is_exposed(one));
        let Some(endpoint) = exposed.next() else {
            return Ok(());
        };
        if self.dangerously_expose_plaintext || tls.dangerously_expose_plaintext {
            warn!(%endpoint, "data for etcd is sent in plaintext to another machine");
            return Ok(());
        }
        Err(format!(
            "`etcd.endpoints` has {endpoint}, which is plaintext to another machine: write https:// and set \
             `etcd.ca_file`, `etcd.cert_file` and `etcd.key_file` (`kafila tls cert create \
             -role=etcd-client`); `etcd.dangerously_expose_plaintext = true` accepts the danger"
        ))
    }
}

/// Tells whether an endpoint is plaintext to another machine. One without a scheme is plaintext.
fn is_exposed(endpoint: &str) -> bool {
    let Ok(uri) = endpoint.parse::<http::Uri>() else {
        // Such an endpoint is refused where it is dialed.
        return false;
    };
    // http makes the scheme lower case, and takes a user's name before the host apart.
    if uri.scheme().is_some_and(|scheme| scheme.as_str() != "http") {
        return false;
    }
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<std::net::IpAddr>();
    host != "localhost" && !address.is_ok_and(|address| address.is_loopback())
}

impl Default for EtcdConfig {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            prefix: "/kafila/v1/".to_owned(),
            ca_file: None,
            cert_file: None,
            key_file: None,
            user: None,
            password_file: None,
            quota_bytes: 2 << 30,
            dangerously_expose_plaintext: false,
        }
    }
}

/// Addresses that the service listens on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListenConfig {
    /// Address of gRPC; the system chooses the port for port 0.
    pub grpc: SocketAddr,
    /// Address of HTTP: `/metrics`, `/healthz`, `/readyz`.
    pub metrics: SocketAddr,
    /// Address at which other processes reach `grpc`, as in `http://10.0.0.7:7101`, if it differs
    /// from `grpc`.
    #[serde(with = "crate::address::optional")]
    pub advertise: Option<String>,
}

impl Default for ListenConfig {
    fn default() -> Self {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            grpc: any_port,
            metrics: any_port,
            advertise: None,
        }
    }
}

impl ListenConfig {
    /// Returns the address to announce, given the one that was bound.
    ///
    /// # Errors
    /// Every interface was bound, and `advertise` names no address to dial.
    pub fn advertised(&self, bound: SocketAddr) -> Result<String, ConfigError> {
        match &self.advertise {
            Some(address) => Ok(address.clone()),
            None if bound.ip().is_unspecified() => Err(ConfigError::Invalid {
                service: "listen".to_owned(),
                problem: format!(
                    "`listen.grpc` is {}, which other processes cannot dial: set `listen.advertise`",
                    self.grpc
                ),
            }),
            None => Ok(format!("http://{bound}")),
        }
    }
}

/// Mutual TLS between services, nodes and the command; the files are reloaded when they change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// Certificates of the authorities that issue the certificates of this cluster, as PEM; unset:
    /// plaintext, which needs `insecure`.
    pub ca_file: Option<PathBuf>,
    /// Certificate of this process, as PEM, with the role of its service.
    pub cert_file: Option<PathBuf>,
    /// Private key of `cert_file`, as PEM.
    pub key_file: Option<PathBuf>,
    /// Region of the cluster: of the certificate, of the servers that this process dials, and of the jobs
    /// that gateways accept.
    pub region: String,
    /// For development: plaintext, in which every caller has all rights. Needs loopback addresses in
    /// `listen`.
    pub insecure: bool,
    /// For development: with `insecure`, plaintext also beyond loopback. Each machine that reaches
    /// `listen.grpc` then controls the cluster, and runs commands as root on nodes.
    pub dangerously_expose_plaintext: bool,
}

impl TlsConfig {
    /// Plaintext on loopback addresses, for development and tests.
    pub fn insecure() -> Self {
        Self {
            insecure: true,
            ..Self::default()
        }
    }

    /// Plaintext on every address, for development and simulated networks.
    pub fn exposed() -> Self {
        Self {
            dangerously_expose_plaintext: true,
            ..Self::insecure()
        }
    }

    /// Checks that a process without certificates sends nothing to gateways on other machines, which would
    /// command it.
    ///
    /// # Errors
    /// See above: the setting and its problem with the fix.
    pub fn check_gateways(&self, gateways: &[String]) -> Result<(), (&'static str, String)> {
        if !self.insecure || self.dangerously_expose_plaintext {
            return Ok(());
        }
        let Some(gateway) = gateways.iter().find(|one| is_exposed(one)) else {
            return Ok(());
        };
        let problem = format!(
            "{gateway} is another machine, and `tls.insecure` is plaintext without authentication: set \
             `tls.ca_file`, `tls.cert_file` and `tls.key_file` (`kafila tls cert create -role=node`) instead; \
             `tls.dangerously_expose_plaintext = true` accepts the danger, for development"
        );
        Err(("gateways", problem))
    }

    /// Checks that a process without certificates is meant to be one, and is reached from this machine
    /// only.
    ///
    /// # Errors
    /// See above; the problem names the setting and the fix.
    pub(crate) fn check_plaintext(&self, listen: &ListenConfig) -> Result<(), String> {
        const FILES: &str = "set `tls.ca_file`, `tls.cert_file` and `tls.key_file` (`kafila tls ca create`, \
                             `kafila tls cert create`)";
        if !self.insecure {
            return Err(format!(
                "`tls.ca_file` is not set, and connections are encrypted by default: {FILES}, or for \
                 development on this machine alone `tls.insecure = true`"
            ));
        }
        let addresses = [
            ("listen.grpc", listen.grpc),
            ("listen.metrics", listen.metrics),
        ];
        let mut exposed = addresses
            .into_iter()
            .filter(|(_, address)| !address.ip().is_loopback());
        let Some((setting, address)) = exposed.next() else {
            return Ok(());
        };
        if self.dangerously_expose_plaintext {
            warn!(
                %address,
                "tls.dangerously_expose_plaintext is set: each machine that reaches this address controls \
                 the cluster"
            );
            return Ok(());
        }
        Err(format!(
            "`{setting}` is {address}, which other machines reach, and `tls.insecure` is plaintext \
             without authentication: {FILES} instead, or a loopback address such as 127.0.0.1; \
             `tls.dangerously_expose_plaintext = true` accepts the danger, for development"
        ))
    }
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            ca_file: None,
            cert_file: None,
            key_file: None,
            region: "global".to_owned(),
            insecure: false,
            dangerously_expose_plaintext: false,
        }
    }
}

/// Logs, traces and names of metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Log filter, as in `info` or `info,store=debug`. With `debug` or `trace`, libraries of the network stay at
    /// `info` unless the filter names them, as in `debug,h2=debug`.
    pub log: String,
    /// `text`: a line for people; `json`: one object per line, for programs.
    pub log_format: LogFormat,
    /// Endpoint for traces over OTLP's gRPC in plaintext, as in `http://127.0.0.1:4317`; unset: none are
    /// sent. On a network, machines on the path can read names of jobs and addresses.
    pub otlp_endpoint: Option<String>,
    /// Sends the log lines that are printed to `otlp_endpoint` as well, with their trace.
    pub otlp_logs: bool,
    /// Serves metrics that mean the same as one of Nomad's under its name, too.
    pub nomad_metric_names: bool,
}

impl TelemetryConfig {
    /// Returns the endpoint if traces and log lines travel to another machine in plaintext.
    pub(crate) fn exposed_endpoint(&self) -> Option<&str> {
        self.otlp_endpoint.as_deref().filter(|one| is_exposed(one))
    }
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            otlp_endpoint: None,
            otlp_logs: false,
            nomad_metric_names: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One line per event, for people.
    Text,
    /// One JSON object per line, for programs.
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plaintext_to_etcd_stays_on_this_machine_unless_a_setting_accepts_the_danger() {
        let etcd = |endpoint: &str| EtcdConfig {
            endpoints: vec!["http://127.0.0.1:2379".to_owned(), endpoint.to_owned()],
            ..EtcdConfig::default()
        };
        let with_tls = TlsConfig::default();
        for local in [
            "http://localhost:2379",
            "http://127.9.9.9:2379/",
            "http://[::1]:2379",
            "https://10.0.0.1:2379",
        ] {
            assert_eq!(etcd(local).check_plaintext(&with_tls), Ok(()), "{local}");
        }
        for remote in [
            "http://10.0.0.1:2379",
            "http://etcd:2379",
            "http://[fd00::1]:2379",
            "http://127.0.0.1.example.org:2379",
            "HTTP://10.0.0.1:2379",
            "http://localhost:2379@10.0.0.1",
        ] {
            let refused = etcd(remote).check_plaintext(&with_tls).unwrap_err();
            assert!(
                refused.contains(remote) && refused.contains("etcd.ca_file"),
                "{refused}"
            );
            let accepted = EtcdConfig {
                dangerously_expose_plaintext: true,
                ..etcd(remote)
            };
            assert_eq!(accepted.check_plaintext(&with_tls), Ok(()));
            assert_eq!(etcd(remote).check_plaintext(&TlsConfig::exposed()), Ok(()));
        }
    }

    #[test]
    fn a_node_in_plaintext_obeys_gateways_of_its_machine_alone() {
        let gateways = |gateway: &str| vec!["127.0.0.1:4646".to_owned(), gateway.to_owned()];
        for local in ["localhost:4646", "http://[::1]:4646", "127.0.0.2:4646"] {
            let checked = TlsConfig::insecure().check_gateways(&gateways(local));
            assert!(checked.is_ok(), "{local}");
        }
        for remote in ["10.0.0.1:4646", "http://gateway:4646", "gateway"] {
            let refused = TlsConfig::insecure().check_gateways(&gateways(remote));
            let (setting, problem) = refused.unwrap_err();
            assert_eq!(setting, "gateways");
            assert!(problem.contains(remote), "{problem}");
            for accepted in [TlsConfig::exposed(), TlsConfig::default()] {
                assert!(accepted.check_gateways(&gateways(remote)).is_ok());
            }
        }
    }

    #[test]
    fn traces_to_another_machine_are_noticed() {
        let exposed = |endpoint: Option<&str>| {
            let telemetry = TelemetryConfig {
                otlp_endpoint: endpoint.map(str::to_owned),
                ..TelemetryConfig::default()
            };
            telemetry.exposed_endpoint().map(str::to_owned)
        };
        let remote = "http://otel-collector:4317";
        assert_eq!(exposed(Some(remote)).as_deref(), Some(remote));
        assert_eq!(exposed(Some("http://127.0.0.1:4317")), None);
        assert_eq!(exposed(None), None);
    }

    #[test]
    fn plaintext_is_asked_for_and_stays_on_loopback_unless_a_flag_accepts_the_danger() {
        let listen = |grpc: [u8; 4], metrics: [u8; 4]| ListenConfig {
            grpc: SocketAddr::from((grpc, 7101)),
            metrics: SocketAddr::from((metrics, 9100)),
            advertise: None,
        };
        let (own, everywhere) = ([127, 0, 0, 7], [0, 0, 0, 0]);
        let loopback = listen(own, own);
        let refusal = |tls: &TlsConfig, listen: &ListenConfig| -> String {
            tls.check_plaintext(listen).unwrap_err()
        };
        let unasked = refusal(&TlsConfig::default(), &loopback);
        assert!(unasked.contains("`tls.insecure = true`"), "{unasked}");
        let insecure = TlsConfig::insecure();
        assert_eq!(insecure.check_plaintext(&loopback), Ok(()));
        for (listen, setting) in [
            (listen([10, 0, 0, 7], own), "`listen.grpc` is 10.0.0.7:7101"),
            (listen(everywhere, own), "`listen.grpc` is 0.0.0.0:7101"),
            (listen(own, everywhere), "`listen.metrics` is 0.0.0.0:9100"),
        ] {
            let refused = refusal(&insecure, &listen);
            assert!(refused.contains(setting), "{refused}");
            assert!(refused.contains("tls.cert_file"), "{refused}");
            assert_eq!(TlsConfig::exposed().check_plaintext(&listen), Ok(()));
        }
        let unasked = TlsConfig {
            dangerously_expose_plaintext: true,
            ..TlsConfig::default()
        };
        refusal(&unasked, &loopback);
    }

    #[test]
    fn the_advertised_address_is_one_that_others_can_dial() {
        let bound = SocketAddr::from(([10, 0, 0, 7], 7101));
        let mut listen = ListenConfig::default();
        assert_eq!(listen.advertised(bound).unwrap(), "http://10.0.0.7:7101");
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 7101));
        assert!(
            listen
                .advertised(everywhere)
                .unwrap_err()
                .to_string()
                .contains("advertise")
        );
        listen.advertise = Some("http://broker:7101".to_owned());
        assert_eq!(listen.advertised(everywhere).unwrap(), "http://broker:7101");
    }
}
