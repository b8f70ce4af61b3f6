//! A CA, and a verifier like that of a TLS handshake.

use std::time::Duration;

use identity::{Identity, Role};
use pki::{Authority, AuthorityRequest, CertificateRequest, Issued, Moment, Serial};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// 2030-01-01.
pub(crate) const NOW: i64 = 1_893_456_000;
pub(crate) const DAY: i64 = 86_400;

pub(crate) fn moment(serial: u128) -> Moment {
    Moment {
        now: NOW,
        serial: Serial(serial),
    }
}

pub(crate) fn authority_request() -> AuthorityRequest {
    AuthorityRequest {
        common_name: "Test CA".to_owned(),
        days: 1_825,
        is_constrained: false,
        additional_domains: Vec::new(),
    }
}

pub(crate) fn create(request: &AuthorityRequest) -> (Issued, Authority) {
    let created = pki::create_authority(request, moment(1)).unwrap();
    let authority = Authority::read(&created.certificate_pem, &created.key_pem).unwrap();
    (created, authority)
}

pub(crate) fn request(role: Role) -> CertificateRequest {
    CertificateRequest {
        identity: Identity::new(role, "global", "one").unwrap(),
        days: 365,
        dns_names: Vec::new(),
        addresses: Vec::new(),
    }
}

pub(crate) fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// A side of a connection that a certificate is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Server(&'static str),
    Client,
}

/// Verifies a certificate at a time as rustls does, by the certificate of its CA.
pub(crate) fn verify(
    ca_pem: &str,
    certificate_pem: &str,
    side: Side,
    at: i64,
) -> Result<(), webpki::Error> {
    let ca = der(ca_pem);
    let anchors = [anchor_from_trusted_cert(&ca)?];
    let certificate = der(certificate_pem);
    let leaf = EndEntityCert::try_from(&certificate)?;
    let usage = match side {
        Side::Server(_) => KeyUsage::server_auth(),
        Side::Client => KeyUsage::client_auth(),
    };
    let at = UnixTime::since_unix_epoch(Duration::from_secs(at.unsigned_abs()));
    let algorithms = webpki::ALL_VERIFICATION_ALGS;
    leaf.verify_for_usage(algorithms, &anchors, &[], at, usage, None, None)?;
    match side {
        Side::Server(name) => {
            leaf.verify_is_valid_for_subject_name(&ServerName::try_from(name).unwrap())
        }
        Side::Client => Ok(()),
    }
}
