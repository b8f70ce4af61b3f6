//! Certificate and key of a node that makes its own, in files.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use pki::Description;
use service_kit::TlsConfig;

use crate::error::Error;

/// The directory of both below `data_dir`, readable for the agent only.
const DIRECTORY: &str = "tls";
const CERT_FILE: &str = "node.pem";
const KEY_FILE: &str = "node-key.pem";

/// The files of a node's own certificate and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl CertificateFiles {
    /// Returns the files that the node keeps itself: those in `tls` with a token, else those in
    /// `data_dir`. `None`: plaintext, or a certificate that operators make.
    ///
    /// # Errors
    /// The setting and its problem: a token without the certificate of an authority or without a place for
    /// the files.
    pub fn choose(
        tls: &TlsConfig,
        data_dir: Option<&Path>,
        has_token: bool,
    ) -> Result<Option<Self>, (&'static str, &'static str)> {
        if tls.ca_file.is_none() {
            return match has_token {
                true => Err((
                    "tls.ca_file",
                    "is not set beside `introduction`: want the certificate of the cluster's CA, which \
                     gateways are verified by",
                )),
                false => Ok(None),
            };
        }
        match (&tls.cert_file, &tls.key_file, data_dir) {
            (Some(_), Some(_), _) if !has_token => Ok(None),
            (Some(cert), Some(key), _) => Ok(Some(Self {
                cert: cert.clone(),
                key: key.clone(),
            })),
            (None, None, Some(data_dir)) => {
                let directory = data_dir.join(DIRECTORY);
                Ok(Some(Self {
                    cert: directory.join(CERT_FILE),
                    key: directory.join(KEY_FILE),
                }))
            }
            (None, None, None) if has_token => Err((
                "data_dir",
                "is not set beside `introduction`: want a directory, which holds the certificate and its key, \
                 too",
            )),
            // `service_kit::Transport::open` explains it.
            _ => Ok(None),
        }
    }

    /// Returns the reason for a first certificate; `None`: there is one, valid at `now` (Unix seconds).
    ///
    /// # Errors
    /// The certificate cannot be read, or is none.
    pub fn missing(&self, now: i64) -> Result<Option<String>, Error> {
        let cert = self.cert.display();
        Ok(match self.description()? {
            None => Some(format!("there is no {cert}")),
            Some(description) if description.not_after <= now => {
                Some(format!("the certificate in {cert} has expired"))
            }
            Some(_) => None,
        })
    }

    /// Returns what the certificate says; `None`: there is none.
    ///
    /// # Errors
    /// The certificate cannot be read, or is none.
    pub fn description(&self) -> Result<Option<Description>, Error> {
        let text = match fs::read_to_string(&self.cert) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(path_error(&self.cert, source)),
        };
        let description = Description::read(&text);
        Ok(Some(description.map_err(|source| Error::Certificate {
            path: self.cert.clone(),
            source,
        })?))
    }

    /// Returns the signing request of the node's key, which is made and stored first if there is none.
    ///
    /// # Errors
    /// The key cannot be read or written, or is none.
    pub fn signing_request(&self) -> Result<Vec<u8>, Error> {
        let failed = |source| Error::Certificate {
            path: self.key.clone(),
            source,
        };
        let key = match fs::read_to_string(&self.key) {
            Ok(key) => key,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = pki::create_key().map_err(failed)?;
                write(&self.key, &key, 0o600).map_err(|source| path_error(&self.key, source))?;
                key
            }
            Err(source) => return Err(path_error(&self.key, source)),
        };
        pki::sign_request(&key).map_err(failed)
    }

    /// Checks that the certificate can be stored.
    ///
    /// # Errors
    /// Its directory cannot be created or written.
    pub fn check_writable(&self) -> Result<(), Error> {
        let mut name = self.cert.file_name().unwrap_or_default().to_owned();
        name.push(".check");
        let probe = self.cert.with_file_name(name);
        let written = write(&probe, "", 0o600).and_then(|()| fs::remove_file(&probe));
        written.map_err(|source| path_error(&self.cert, source))
    }

    /// Replaces the certificate.
    ///
    /// # Errors
    /// The text is not a certificate, or the file cannot be written.
    pub fn store(&self, certificate: &str) -> Result<(), Error> {
        Description::read(certificate).map_err(|source| Error::Certificate {
            path: self.cert.clone(),
            source,
        })?;
        write(&self.cert, certificate, 0o644).map_err(|source| path_error(&self.cert, source))
    }
}

fn path_error(path: &Path, source: io::Error) -> Error {
    Error::Path {
        path: path.to_owned(),
        what: "cannot read or write the file",
        source,
    }
}

fn create_dir(path: &Path, mode: u32) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(mode).create(path)
}

/// Writes a file as a whole, or not at all; it survives a power cut.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    // Users of tasks enter the data directory; it may not exist yet.
    if let Some(data_dir) = directory.parent() {
        create_dir(data_dir, 0o755)?;
    }
    create_dir(directory, 0o700)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let draft = directory.join(name);
    // A draft of an earlier attempt may have other rights.
    if let Err(error) = fs::remove_file(&draft)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn tls(has_ca: bool, has_own: bool) -> TlsConfig {
        let file = |exists: bool, name: &str| exists.then(|| PathBuf::from(name));
        TlsConfig {
            ca_file: file(has_ca, "ca.pem"),
            cert_file: file(has_own, "own.pem"),
            key_file: file(has_own, "own-key.pem"),
            ..TlsConfig::default()
        }
    }

    #[test]
    fn a_node_keeps_its_own_files_with_a_token_or_without_files_of_an_operator() {
        let choose = |has_ca, has_data: bool, has_own, has_token| {
            let data_dir = has_data.then_some(Path::new("/data"));
            let chosen = CertificateFiles::choose(&tls(has_ca, has_own), data_dir, has_token);
            chosen.map(|files| files.map(|files| files.cert.display().to_string()))
        };
        let in_data = Some("/data/tls/node.pem".to_owned());
        assert_eq!(choose(false, false, false, false), Ok(None), "plaintext");
        assert_eq!(choose(true, true, false, true), Ok(in_data.clone()));
        // The token is gone after the first start.
        assert_eq!(choose(true, true, false, false), Ok(in_data));
        assert_eq!(choose(true, true, true, false), Ok(None));
        let own = Some("own.pem".to_owned());
        assert_eq!(choose(true, true, true, true), Ok(own));
        assert_eq!(
            choose(false, true, false, true).unwrap_err().0,
            "tls.ca_file"
        );
        assert_eq!(choose(true, false, false, true).unwrap_err().0, "data_dir");
    }

    #[test]
    fn the_key_is_made_once_for_the_agent_alone() {
        let folder = tempfile::tempdir().unwrap();
        let files = CertificateFiles {
            cert: folder.path().join("data/tls/node.pem"),
            key: folder.path().join("data/tls/node-key.pem"),
        };
        assert!(files.missing(0).unwrap().unwrap().contains("node.pem"));
        files.check_writable().unwrap();
        assert_eq!(
            fs::read_dir(folder.path().join("data/tls"))
                .unwrap()
                .count(),
            0
        );
        let blocked = CertificateFiles {
            cert: folder.path().join("file/tls/node.pem"),
            key: files.key.clone(),
        };
        fs::write(folder.path().join("file"), "").unwrap();
        let refused = blocked.check_writable().unwrap_err().to_string();
        assert!(refused.contains("file/tls/node.pem"), "{refused}");
        let key_of = |der: Vec<u8>| pki::SigningRequest::read(&der).unwrap().public_key();
        let first = key_of(files.signing_request().unwrap());
        assert_eq!(key_of(files.signing_request().unwrap()), first);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&files.key), 0o600);
        assert_eq!(mode(files.key.parent().unwrap()), 0o700);
        assert_eq!(
            mode(&folder.path().join("data")),
            0o755,
            "for users of tasks"
        );
        let refused = files.store("no certificate").unwrap_err();
        assert!(matches!(refused, Error::Certificate { .. }), "{refused}");
        assert!(!files.cert.exists());
    }

    #[test]
    fn an_expired_certificate_counts_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let files = CertificateFiles {
            cert: folder.path().join("node.pem"),
            key: folder.path().join("node-key.pem"),
        };
        let request = pki::NodeAuthorityRequest {
            common_name: "a CA".to_owned(),
            days: 1,
            region: "global".to_owned(),
        };
        let moment = pki::Moment {
            now: 1_000_000,
            serial: pki::Serial(1),
        };
        let made = pki::create_node_authority(&request, moment).unwrap();
        files.store(&made.certificate_pem).unwrap();
        assert_eq!(files.missing(1_000_000 + 86_399).unwrap(), None);
        let reason = files.missing(1_000_000 + 86_400).unwrap().unwrap();
        assert!(reason.contains("has expired"), "{reason}");
    }
}
