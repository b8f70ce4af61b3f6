//! The secrets of a stack: made by scripts/compose-secrets in a directory that is removed at the end.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use identity::{Identity, Role};
use pki::{Authority, CertificateRequest, Moment, Serial};
use service_kit::Clock;
use tls::{Connector, Credentials, Expect, Files, KeyPair};

/// The shortest validity of a certificate, in seconds.
const DAY: i64 = 86_400;

/// A directory of secrets.
#[derive(Debug)]
pub struct Secrets {
    directory: tempfile::TempDir,
}

impl Secrets {
    /// # Errors
    /// The directory cannot be made.
    pub fn new() -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        // Processes of other users enter it: those of the containers.
        builder.permissions(fs::Permissions::from_mode(0o711));
        let directory = builder.prefix("kafila-secrets-").tempdir()?;
        Ok(Self { directory })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn operator(&self, file: &str) -> PathBuf {
        self.path().join("operator").join(file)
    }

    /// Returns the environment of a command with the operator's certificate.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let files = [
            ("KAFILA_CACERT", "ca.pem"),
            ("KAFILA_CLIENT_CERT", "cert.pem"),
            ("KAFILA_CLIENT_KEY", "key.pem"),
        ];
        let path = |file: &str| self.operator(file).display().to_string();
        files.map(|(name, file)| (name, path(file))).into()
    }

    /// Returns the files of the operator for the client in sdk/rust.
    pub fn client_tls(&self) -> kafila_client::Tls {
        kafila_client::Tls {
            ca_cert: Some(self.operator("ca.pem")),
            client_cert: Some(self.operator("cert.pem")),
            client_key: Some(self.operator("key.pem")),
            ..kafila_client::Tls::default()
        }
    }

    /// Returns connections with the operator's certificate.
    ///
    /// # Errors
    /// A file is missing.
    pub fn connector(&self) -> Result<Connector> {
        let files = Files {
            ca: Some(self.operator("ca.pem")),
            own: Some(KeyPair {
                cert: self.operator("cert.pem"),
                key: self.operator("key.pem"),
            }),
            ..Files::default()
        };
        let credentials = Credentials::load("gateway", files)?;
        Ok(Connector::new(credentials, Expect::Host))
    }

    /// Returns the path of the certificate of Kafila's authority.
    pub fn authority(&self) -> PathBuf {
        self.operator("ca.pem")
    }

    /// Writes `cert.pem` and `key.pem` of a new node to `folder`, and returns the node's id.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn issue_for_a_node(&self, folder: &Path) -> Result<String> {
        let id = uuid::Uuid::from_bytes(rand::random()).to_string();
        let request = CertificateRequest {
            identity: Identity::new(Role::Node, "global", &id)?,
            days: 1,
            dns_names: Vec::new(),
            addresses: Vec::new(),
        };
        let issued = self.sign(&request, now_seconds()?)?;
        fs::write(folder.join("key.pem"), &issued.key_pem)?;
        fs::write(folder.join("cert.pem"), &issued.certificate_pem)?;
        Ok(id)
    }

    fn sign(&self, request: &CertificateRequest, now: i64) -> Result<pki::Issued> {
        let ca = self.path().join("ca");
        let read = |name: &str| fs::read_to_string(ca.join(name));
        let authority = Authority::read(&read("kafila-ca.pem")?, &read("kafila-ca-key.pem")?)?;
        let serial = Serial(rand::random());
        Ok(authority.issue(request, Moment { now, serial })?)
    }

    /// Replaces the certificate of the gateways by one that expires after `left`.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn let_gateways_expire(&self, left: Duration) -> Result<()> {
        let request = CertificateRequest {
            identity: Identity::new(Role::Gateway, "global", "gateway")?,
            days: 1,
            dns_names: vec!["api-gateway".to_owned()],
            addresses: Vec::new(),
        };
        let now = now_seconds()? + i64::try_from(left.as_secs())? - DAY;
        let issued = self.sign(&request, now)?;
        let folder = self.path().join("api-gateway");
        replace(&folder.join("key.pem"), &issued.key_pem)?;
        replace(&folder.join("cert.pem"), &issued.certificate_pem)
    }
}

fn now_seconds() -> Result<i64> {
    Ok(i64::try_from(Clock::real().now() / 1_000_000_000)?)
}

/// Replaces a file; owner and mode stay.
fn replace(path: &Path, text: &str) -> Result<()> {
    let old = fs::metadata(path).with_context(|| path.display().to_string())?;
    let draft = path.with_extension("draft");
    fs::write(&draft, text)?;
    fs::set_permissions(&draft, old.permissions())?;
    chown(&draft, Some(old.uid()), Some(old.gid()))?;
    fs::rename(&draft, path)?;
    Ok(())
}
