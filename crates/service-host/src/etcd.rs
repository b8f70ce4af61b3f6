//! Options of the connection to etcd, from a service's settings.

use service_kit::run::chain;
use service_kit::{ConfigError, EtcdConfig};
use store::{ClientOptions, User};
use tls::{Credentials, Files, KeyPair};

/// Loads the certificates for etcd, if an endpoint has `https://`, and returns the options of the
/// client.
///
/// # Errors
/// A file cannot be used, or settings do not belong together.
pub fn client_options(etcd: &EtcdConfig) -> Result<ClientOptions, ConfigError> {
    let is_secured = |endpoint: &String| endpoint.starts_with("https://");
    let has_files = etcd.ca_file.is_some() || etcd.cert_file.is_some() || etcd.key_file.is_some();
    if has_files && !etcd.endpoints.iter().all(is_secured) {
        return Err(invalid(
            "`etcd.ca_file`, `cert_file` and `key_file` are for TLS: want endpoints with https://",
        ));
    }
    let user = match (&etcd.user, &etcd.password_file) {
        (None, None) => None,
        (Some(name), Some(password_file)) => Some(User {
            name: name.clone(),
            password_file: password_file.clone(),
        }),
        _ => {
            return Err(invalid(
                "`etcd.user` and `etcd.password_file` need each other",
            ));
        }
    };
    Ok(ClientOptions {
        prefix: etcd.prefix.clone(),
        tls: match etcd.endpoints.iter().any(is_secured) {
            true => Some(credentials(etcd)?),
            false => None,
        },
        user,
        ..ClientOptions::default()
    })
}

fn credentials(etcd: &EtcdConfig) -> Result<Credentials, ConfigError> {
    let own = match (&etcd.cert_file, &etcd.key_file) {
        (None, None) => None,
        (Some(cert), Some(key)) => Some(KeyPair {
            cert: cert.clone(),
            key: key.clone(),
        }),
        _ => {
            return Err(invalid(
                "`etcd.cert_file` and `etcd.key_file` need each other",
            ));
        }
    };
    let files = Files {
        ca: etcd.ca_file.clone(),
        own,
        ..Files::default()
    };
    Credentials::load("etcd", files).map_err(|error| invalid(&chain(&error)))
}

fn invalid(problem: &str) -> ConfigError {
    ConfigError::Invalid {
        service: "etcd".to_owned(),
        problem: problem.to_owned(),
    }
}
