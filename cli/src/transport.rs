//! TLS of the connection to the gateway: files and names from flags or the environment.

use std::path::PathBuf;

use tls::{Connector, Credentials, Expect, Files, KeyPair, ServerName, Verify};

use crate::args::Global;
use crate::error::Error;

/// Environment variables by setting, by precedence; the second of each is Nomad's.
const CA_CERT: [&str; 2] = ["KAFILA_CACERT", "NOMAD_CACERT"];
const CLIENT_CERT: [&str; 2] = ["KAFILA_CLIENT_CERT", "NOMAD_CLIENT_CERT"];
const CLIENT_KEY: [&str; 2] = ["KAFILA_CLIENT_KEY", "NOMAD_CLIENT_KEY"];
const SERVER_NAME: [&str; 2] = ["KAFILA_TLS_SERVER_NAME", "NOMAD_TLS_SERVER_NAME"];
const SKIP_VERIFY: [&str; 2] = ["KAFILA_SKIP_VERIFY", "NOMAD_SKIP_VERIFY"];

/// Settings of TLS; used for `https://` addresses only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsSettings {
    ca_cert: Option<PathBuf>,
    client_cert: Option<PathBuf>,
    client_key: Option<PathBuf>,
    server_name: Option<String>,
    skip_verify: bool,
}

impl TlsSettings {
    /// Chooses each setting: the flag, then the environment.
    pub(crate) fn choose(global: &Global, variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&str; 2]| {
            let set = names.into_iter().filter_map(&variable);
            set.into_iter().find(|text| !text.is_empty())
        };
        let path = |flag: &Option<PathBuf>, names| {
            flag.clone().or_else(|| first(names).map(PathBuf::from))
        };
        let is_true = |text: String| !matches!(text.as_str(), "0" | "false" | "f");
        Self {
            ca_cert: path(&global.ca_cert, CA_CERT),
            client_cert: path(&global.client_cert, CLIENT_CERT),
            client_key: path(&global.client_key, CLIENT_KEY),
            server_name: global
                .tls_server_name
                .clone()
                .or_else(|| first(SERVER_NAME)),
            skip_verify: global.tls_skip_verify || first(SKIP_VERIFY).is_some_and(is_true),
        }
    }

    /// Loads the files.
    ///
    /// # Errors
    /// A file cannot be used, or the certificate comes without its key.
    pub(crate) fn connector(&self) -> Result<Connector, Error> {
        let own = match (&self.client_cert, &self.client_key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some(KeyPair {
                cert: cert.clone(),
                key: key.clone(),
            }),
            _ => {
                return Err(Error::text(
                    "A client certificate needs its key: set both -client-cert and -client-key, or \
                     KAFILA_CLIENT_CERT and KAFILA_CLIENT_KEY.",
                ));
            }
        };
        let files = Files {
            ca: self.ca_cert.clone(),
            own,
        };
        let verify = match self.skip_verify {
            true => Verify::Nothing,
            false => Verify::Servers,
        };
        let credentials = Credentials::load_with("gateway", files, verify, |_| Ok(()))
            .map_err(|error| Error::text(format!("TLS: {}", service_kit::run::chain(&error))))?;
        let expect = match &self.server_name {
            None => Expect::Host,
            Some(name) => Expect::Name(ServerName::try_from(name.clone()).map_err(|_| {
                Error::text(format!("-tls-server-name: {name:?} is not a DNS name."))
            })?),
        };
        Ok(Connector::new(credentials, expect))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Cli;

    fn choose(line: &[&str], variables: &[(&str, &str)]) -> TlsSettings {
        let words = [&["kafila", "version"], line].concat();
        let global = Cli::try_parse_from(words).unwrap().global;
        TlsSettings::choose(&global, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_flag_wins_over_our_variable_and_that_over_nomads() {
        let variables = [
            ("NOMAD_CACERT", "n.pem"),
            ("KAFILA_CACERT", "k.pem"),
            ("NOMAD_SKIP_VERIFY", "true"),
            ("KAFILA_TLS_SERVER_NAME", "gateway.global.kafila"),
        ];
        let chosen = choose(&["--ca-cert", "f.pem"], &variables);
        assert_eq!(chosen.ca_cert, Some(PathBuf::from("f.pem")));
        assert!(chosen.skip_verify);
        assert_eq!(chosen.server_name.as_deref(), Some("gateway.global.kafila"));
        let chosen = choose(&[], &variables);
        assert_eq!(chosen.ca_cert, Some(PathBuf::from("k.pem")));
        let chosen = choose(&[], &variables[..1]);
        assert_eq!(chosen.ca_cert, Some(PathBuf::from("n.pem")));
        assert!(!choose(&[], &[("KAFILA_SKIP_VERIFY", "false")]).skip_verify);
        assert_eq!(choose(&[], &[]), TlsSettings::default());
    }

    #[test]
    fn a_certificate_without_its_key_is_refused() {
        let error = choose(&["--client-cert", "c.pem"], &[]).connector();
        let text = error.unwrap_err().to_string();
        assert!(text.contains("-client-key"), "{text}");
    }
}
