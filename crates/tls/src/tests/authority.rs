//! A certificate authority for tests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair as RcgenKey,
};
use tempfile::TempDir;

use crate::credentials::Credentials;
use crate::files::{Files, KeyPair, now};

pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, RcgenKey>,
}

/// PEM texts of a certificate and its key.
pub(super) struct Issued {
    pub(super) cert: String,
    pub(super) key: String,
}

/// Validity relative to now.
#[derive(Clone, Copy)]
pub(super) enum Valid {
    Now,
    /// Ended an hour ago.
    Expired,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority");
        let key = RcgenKey::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    pub(super) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(super) fn issue(&self, name: &str, valid: Valid) -> Issued {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let at = |hours: i64| {
            let seconds = u64::try_from(now() + hours * 3600).unwrap();
            (std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).into()
        };
        (params.not_before, params.not_after) = match valid {
            Valid::Now => (at(-1), at(24)),
            Valid::Expired => (at(-2), at(-1)),
        };
        let key = RcgenKey::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued {
            cert: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// Files in a directory of their own.
pub(super) struct Directory {
    directory: TempDir,
}

impl Directory {
    pub(super) fn new(authority: &str, own: Option<&Issued>) -> Self {
        let directory = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        directory.write("ca.pem", authority);
        if let Some(own) = own {
            directory.replace(own);
        }
        directory
    }

    pub(super) fn replace(&self, own: &Issued) {
        self.write("cert.pem", &own.cert);
        self.write("key.pem", &own.key);
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::join(self.directory.path(), name)
    }

    pub(super) fn files(&self) -> Files {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        let own = cert.exists().then_some(KeyPair { cert, key });
        Files {
            ca: Some(self.path("ca.pem")),
            further_ca: Some(self.path("further.pem")).filter(|path| path.exists()),
            verify_own: false,
            own,
        }
    }

    pub(super) fn load(&self) -> Credentials {
        Credentials::load("services", self.files()).unwrap()
    }
}

/// Returns credentials of one name, both issued and verified by `authority`.
pub(super) fn credentials(authority: &Authority, name: &str) -> Credentials {
    let own = authority.issue(name, Valid::Now);
    Directory::new(&authority.pem(), Some(&own)).load()
}
