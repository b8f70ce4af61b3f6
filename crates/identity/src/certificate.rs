//! The identity in a certificate: one URI, and DNS names that do not contradict it.

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::name::{Identity, InvalidIdentity};

/// A certificate without an identity that counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCertificate {
    #[error("the certificate is not DER-encoded X.509: {0}")]
    Encoding(String),
    #[error("{0} bytes follow the certificate")]
    TrailingBytes(usize),
    #[error("the certificate's subject alternative names are malformed: {0}")]
    AlternativeNames(String),
    #[error(
        "the certificate has no URI of the form spiffe://REGION.kafila/ROLE/NAME; create one with \
         kafila tls cert create -role ROLE"
    )]
    NoUri,
    #[error("the certificate has {0} URIs: want exactly one")]
    SeveralUris(usize),
    #[error("the certificate's identity is invalid")]
    Identity(#[source] InvalidIdentity),
    #[error("the certificate is one of {identity}, so it cannot have the DNS name {dns_name:?}")]
    ForeignDnsName {
        identity: Identity,
        dns_name: String,
    },
    #[error(
        "the certificate is one of {identity} and lacks the DNS name {}, which the CA of another role \
         could not give it; create one with kafila tls cert create -role {}",
        identity.dns_name(), identity.role()
    )]
    NoRoleName { identity: Identity },
    #[error("the certificate is one of a CA: a CA cannot call services")]
    Authority,
}

impl Identity {
    /// Reads the identity of a certificate that the TLS handshake has verified.
    ///
    /// Shape: `der` is one DER-encoded X.509 certificate. Its subject plays no role.
    ///
    /// # Errors
    /// The certificate has no URI of ours or several URIs, an unknown role, no DNS name of its role, one
    /// of another role or region, or is one of a CA.
    pub fn from_certificate(der: &[u8]) -> Result<Self, InvalidCertificate> {
        let (rest, certificate) = X509Certificate::from_der(der)
            .map_err(|error| InvalidCertificate::Encoding(error.to_string()))?;
        if !rest.is_empty() {
            return Err(InvalidCertificate::TrailingBytes(rest.len()));
        }
        if certificate.is_ca() {
            return Err(InvalidCertificate::Authority);
        }
        let names = certificate
            .subject_alternative_name()
            .map_err(|error| InvalidCertificate::AlternativeNames(error.to_string()))?;
        let names = names.map_or(&[][..], |names| &names.value.general_names);
        let identity = from_names(names)?;
        let role_name = identity.dns_name();
        let mut has_role_name = false;
        for name in names {
            let GeneralName::DNSName(dns_name) = name else {
                continue;
            };
            // Clients verify servers by this name: a node that had the one of gateways could pose as a
            // gateway.
            if !identity.may_have(dns_name) {
                return Err(InvalidCertificate::ForeignDnsName {
                    identity,
                    dns_name: (*dns_name).to_owned(),
                });
            }
            has_role_name |= **dns_name == role_name;
        }
        // Name constraints bind DNS names and no URIs: this name makes them bind the role, so the CA of
        // nodes cannot make an operator.
        if !has_role_name {
            return Err(InvalidCertificate::NoRoleName { identity });
        }
        Ok(identity)
    }
}

fn from_names(names: &[GeneralName<'_>]) -> Result<Identity, InvalidCertificate> {
    let uris: Vec<&str> = names
        .iter()
        .filter_map(|name| match name {
            GeneralName::URI(uri) => Some(*uri),
            _ => None,
        })
        .collect();
    match uris[..] {
        [] => Err(InvalidCertificate::NoUri),
        [uri] => Identity::from_uri(uri).map_err(InvalidCertificate::Identity),
        _ => Err(InvalidCertificate::SeveralUris(uris.len())),
    }
}
