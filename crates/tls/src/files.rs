//! Files with certificates and keys, and their parsed contents.

use std::fs;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::error::Error;
use crate::own;

/// The files of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Certificates of the authorities that peers' certificates are verified with, as PEM; `None`:
    /// the system's.
    pub ca: Option<PathBuf>,
    /// Certificates of further authorities, as PEM: the CA of nodes, at a gateway.
    pub further_ca: Option<PathBuf>,
    /// The process's own certificate; `None`: a client without one.
    pub own: Option<KeyPair>,
    /// Refuses an own certificate that `ca` does not verify: for processes whose peers have the same
    /// `ca`, and would refuse it.
    pub verify_own: bool,
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPair {
    /// The certificate and its intermediate authorities, as PEM, the certificate first.
    pub cert: PathBuf,
    /// The private key, as PEM: PKCS#8, SEC1 or PKCS#1.
    pub key: PathBuf,
}

/// The bytes of all files, compared to detect changes.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    ca: Option<Vec<u8>>,
    further_ca: Option<Vec<u8>>,
    own: Option<(Vec<u8>, Vec<u8>)>,
}

/// The parsed contents.
pub(crate) struct Material {
    pub(crate) roots: RootCertStore,
    pub(crate) own: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    pub(crate) expiry: Expiry,
}

/// The ends of validity, in Unix seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expiry {
    /// The first end within the chain of the process's own certificate.
    pub(crate) certificate: Option<i64>,
    /// Seconds from the start to the end of the validity of the process's own certificate.
    pub(crate) validity: Option<i64>,
    /// The last end of all authorities: after it no peer can be verified.
    pub(crate) authority: Option<i64>,
}

impl Files {
    pub(crate) fn read(&self) -> Result<Contents, Error> {
        let own = match &self.own {
            Some(pair) => Some((read(&pair.cert)?, read(&pair.key)?)),
            None => None,
        };
        let ca = self.ca.as_deref().map(read).transpose()?;
        let further_ca = self.further_ca.as_deref().map(read).transpose()?;
        Ok(Contents {
            ca,
            further_ca,
            own,
        })
    }

    /// # Errors
    /// A file is malformed, or the process's own certificate has expired or cannot be verified.
    pub(crate) fn parse(&self, contents: &Contents) -> Result<Material, Error> {
        let mut expiry = Expiry::default();
        let mut roots = match (&self.ca, &contents.ca) {
            (Some(path), Some(bytes)) => {
                let certificates = certificates(path, bytes)?;
                expiry.authority = ends(path, &certificates)?.into_iter().max();
                store(path, certificates)?
            }
            _ => system_roots()?,
        };
        // A peer does not know the further authorities.
        let peer_roots = self.verify_own.then(|| roots.clone());
        if let (Some(path), Some(bytes)) = (&self.further_ca, &contents.further_ca) {
            let further = store(path, certificates(path, bytes)?)?;
            roots.extend(further.roots);
        }
        let own = match (&self.own, &contents.own) {
            (Some(pair), Some((cert, key))) => {
                let chain = certificates(&pair.cert, cert)?;
                let end = ends(&pair.cert, &chain)?.into_iter().min();
                check_end(&pair.cert, end)?;
                expiry.certificate = end;
                expiry.validity = end
                    .zip(start(&pair.cert, &chain)?)
                    .map(|(end, start)| end - start);
                if let (Some(roots), Some(ca)) = (peer_roots, &self.ca) {
                    own::verify(&chain, roots).map_err(|problem| Error::Issuer {
                        cert: pair.cert.clone(),
                        ca: ca.clone(),
                        problem,
                    })?;
                }
                Some((chain, private_key(&pair.key, key)?))
            }
            _ => None,
        };
        Ok(Material { roots, own, expiry })
    }
}

/// Returns the current Unix time in seconds.
pub(crate) fn now() -> i64 {
    i64::try_from(UnixTime::now().as_secs()).unwrap_or(i64::MAX)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })
}

fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(bytes) {
        found.push(certificate.map_err(|error| pem_error(path, &error))?);
    }
    if found.is_empty() {
        return Err(Error::Empty {
            path: path.to_owned(),
            wanted: "certificate",
        });
    }
    Ok(found)
}

fn private_key(path: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(bytes).map_err(|error| match error {
        rustls_pki_types::pem::Error::NoItemsFound => Error::Empty {
            path: path.to_owned(),
            wanted: "private key",
        },
        error => pem_error(path, &error),
    })
}

fn pem_error(path: &Path, error: &rustls_pki_types::pem::Error) -> Error {
    Error::Pem {
        path: path.to_owned(),
        problem: error.to_string(),
    }
}

fn ends(path: &Path, certificates: &[CertificateDer<'_>]) -> Result<Vec<i64>, Error> {
    let end = |certificate: &CertificateDer<'_>| {
        let (_, parsed) =
            X509Certificate::from_der(certificate).map_err(|error| Error::Certificate {
                path: path.to_owned(),
                problem: error.to_string(),
            })?;
        Ok(parsed.validity().not_after.timestamp())
    };
    certificates.iter().map(end).collect()
}

/// Returns the start of the validity of the first certificate.
fn start(path: &Path, chain: &[CertificateDer<'_>]) -> Result<Option<i64>, Error> {
    let parse = |certificate: &CertificateDer<'_>| {
        let (_, parsed) =
            X509Certificate::from_der(certificate).map_err(|error| Error::Certificate {
                path: path.to_owned(),
                problem: error.to_string(),
            })?;
        Ok(parsed.validity().not_before.timestamp())
    };
    chain.first().map(parse).transpose()
}

fn check_end(path: &Path, end: Option<i64>) -> Result<(), Error> {
    let Some(end) = end.filter(|end| *end <= now()) else {
        return Ok(());
    };
    let expired_at = x509_parser::time::ASN1Time::from_timestamp(end)
        .map_or_else(|_| end.to_string(), |time| time.to_string());
    Err(Error::Expired {
        path: path.to_owned(),
        expired_at,
    })
}

fn store(path: &Path, certificates: Vec<CertificateDer<'static>>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|error| Error::Certificate {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    // A system may list certificates that are no longer usable.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Error::NoSystemRoots);
    }
    Ok(roots)
}
