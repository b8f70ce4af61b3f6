//! Verification of the process's own certificate as its peers verify it.

use std::sync::Arc;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::ring;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, RootCertStore};
use rustls_pki_types::{CertificateDer, UnixTime};

/// Verifies `chain`, the certificate first, as that of a server and of a client.
///
/// # Errors
/// The problem, in words.
pub(crate) fn verify(chain: &[CertificateDer<'_>], roots: RootCertStore) -> Result<(), String> {
    let Some((leaf, intermediates)) = chain.split_first() else {
        return Ok(());
    };
    let now = UnixTime::now();
    let provider = Arc::new(ring::default_provider());
    let algorithms = provider.signature_verification_algorithms.all;
    let server = ParsedCertificate::try_from(leaf).map_err(|error| describe(&error))?;
    verify_server_cert_signed_by_trust_anchor(&server, &roots, intermediates, now, algorithms)
        .map_err(|error| describe(&error))?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| error.to_string())?;
    clients
        .verify_client_cert(leaf, intermediates, now)
        .map_err(|error| describe(&error))?;
    Ok(())
}

fn describe(error: &rustls::Error) -> String {
    match error {
        // An authority of the same name with another key gives a bad signature.
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => "another authority has issued it".to_owned(),
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => "it is not valid yet: check the clock of this machine".to_owned(),
        rustls::Error::InvalidCertificate(
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
        ) => "it is not for both servers and clients".to_owned(),
        other => other.to_string(),
    }
}
