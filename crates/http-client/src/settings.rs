//! Settings of a client, as the section of a service has them: address, TLS and limits.

use std::path::PathBuf;
use std::time::Duration;

use tls::{Clients, Connector, Credentials, Expect, ServerName, Verify};

use crate::failure::Service;
use crate::server::{Scheme, Server};

/// A setting that is wrong, without its section, and the problem with its fix.
pub type SettingProblem = (&'static str, String);

/// Settings of a client. The fields have the names of the settings, which errors name.
#[derive(Clone, Debug)]
pub struct Settings {
    pub service: Service,
    pub address: String,
    /// `None`: an address without a scheme is refused.
    pub default_scheme: Option<Scheme>,
    /// The form of an address that a refusal names, as in `want https://HOST[:PORT]`.
    pub want_address: &'static str,
    pub tls: Tls,
    /// Time for one request.
    pub timeout: Duration,
    /// Requests at a time; others wait.
    pub max_requests: usize,
    /// Bytes of an answer.
    pub answer_max: usize,
}

/// Certificates, for an address with `https`.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// `None`: the machine's authorities.
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    /// Empty: the host of the address.
    pub tls_server_name: String,
    pub tls_skip_verify: bool,
}

impl Settings {
    /// Checks the settings; nothing is read or sent.
    ///
    /// # Errors
    /// The setting that is wrong.
    pub fn check(&self) -> Result<(), SettingProblem> {
        self.server()?;
        if self.tls.cert_file.is_some() != self.tls.key_file.is_some() {
            let problem = "`cert_file` and `key_file` belong together: set both or none";
            return Err(("key_file", problem.to_owned()));
        }
        if self.max_requests == 0 {
            return Err(("max_requests", "is 0: want 1 or more".to_owned()));
        }
        check_duration("timeout", self.timeout)
    }

    pub(crate) fn server(&self) -> Result<Server, SettingProblem> {
        Server::parse(&self.address, self.default_scheme, self.want_address)
            .map_err(|problem| ("address", problem))
    }

    /// Reads the certificates. Blocks.
    ///
    /// # Errors
    /// The setting that is wrong.
    pub(crate) fn connector(&self) -> Result<Connector, SettingProblem> {
        let expect = match self.tls.tls_server_name.as_str() {
            "" => Expect::Host,
            name => Expect::Name(ServerName::try_from(name.to_owned()).map_err(|error| {
                (
                    "tls_server_name",
                    format!("{name:?}: {error}; want a DNS name"),
                )
            })?),
        };
        let verify = if self.tls.tls_skip_verify {
            Verify::Nothing
        } else {
            Verify::Servers
        };
        let loaded = Credentials::load_with(
            self.service.section,
            self.tls.files(),
            verify,
            Clients::Certified,
            |_| Ok(()),
        );
        let credentials = loaded.map_err(|error| {
            let field = if self.tls.ca_file.is_some() {
                "ca_file"
            } else {
                "cert_file"
            };
            (field, service_kit::run::chain(&error))
        })?;
        Ok(Connector::new(credentials, expect).for_http1())
    }
}

impl Tls {
    fn files(&self) -> tls::Files {
        let own = self.cert_file.clone().zip(self.key_file.clone());
        tls::Files {
            ca: self.ca_file.clone(),
            own: own.map(|(cert, key)| tls::KeyPair { cert, key }),
            ..tls::Files::default()
        }
    }
}

/// Refuses a time that would keep a core busy.
///
/// # Errors
/// It is below one second.
pub fn check_duration(field: &'static str, duration: Duration) -> Result<(), SettingProblem> {
    if duration < Duration::from_secs(1) {
        return Err((field, "is below 1s: want a duration, as in 10s".to_owned()));
    }
    Ok(())
}
