//! Description of a certificate: its subject, names, role and validity.

use std::net::IpAddr;

use identity::{Identity, InvalidCertificate};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::Pem;
use x509_parser::prelude::X509Certificate;

use crate::error::Error;

/// The contents of one certificate.
#[derive(Clone, Debug)]
pub struct Description {
    pub subject: String,
    pub issuer: String,
    /// Hexadecimal, bytes separated by colons.
    pub serial: String,
    /// In Unix seconds, as the next.
    pub not_before: i64,
    pub not_after: i64,
    pub is_authority: bool,
    pub dns_names: Vec<String>,
    pub uris: Vec<String>,
    pub addresses: Vec<IpAddr>,
    pub is_for_servers: bool,
    pub is_for_clients: bool,
    /// Domains of the name constraints of a CA; empty: none.
    pub permitted_domains: Vec<String>,
    /// The caller that the certificate makes of its holder.
    pub identity: Result<Identity, InvalidCertificate>,
    /// The subject's public key, as it is signed.
    pub(crate) public_key: Vec<u8>,
}

impl Description {
    /// Reads the first certificate of a PEM file.
    ///
    /// # Errors
    /// There is none, or it is malformed.
    pub fn read(pem: &str) -> Result<Self, Error> {
        let mut blocks = Pem::iter_from_buffer(pem.as_bytes());
        let block = blocks
            .find_map(|block| block.ok().filter(|block| block.label == "CERTIFICATE"))
            .ok_or(Error::NoCertificate)?;
        let certificate = block
            .parse_x509()
            .map_err(|error| Error::Malformed(error.to_string()))?;
        let identity = Identity::from_certificate(&block.contents);
        Self::of(&certificate, identity)
    }

    fn of(
        certificate: &X509Certificate<'_>,
        identity: Result<Identity, InvalidCertificate>,
    ) -> Result<Self, Error> {
        let malformed = |error: x509_parser::error::X509Error| Error::Malformed(error.to_string());
        let usage = certificate.extended_key_usage().map_err(malformed)?;
        let mut description = Self {
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            serial: certificate.raw_serial_as_string(),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            is_authority: certificate.is_ca(),
            dns_names: Vec::new(),
            uris: Vec::new(),
            addresses: Vec::new(),
            is_for_servers: usage.as_ref().is_some_and(|usage| usage.value.server_auth),
            is_for_clients: usage.as_ref().is_some_and(|usage| usage.value.client_auth),
            permitted_domains: Vec::new(),
            identity,
            public_key: certificate.public_key().subject_public_key.data.to_vec(),
        };
        for extension in certificate.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectAlternativeName(names) => {
                    for name in &names.general_names {
                        description.add_name(name);
                    }
                }
                ParsedExtension::NameConstraints(constraints) => {
                    for subtree in constraints.permitted_subtrees.iter().flatten() {
                        if let GeneralName::DNSName(domain) = subtree.base {
                            description.permitted_domains.push(domain.to_owned());
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(description)
    }

    fn add_name(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
            GeneralName::URI(uri) => self.uris.push((*uri).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                let v6 = <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
                self.addresses.extend(v4.or(v6));
            }
            _ => {}
        }
    }

    /// Tells whether the name constraints of this CA permit a DNS name.
    pub(crate) fn permits(&self, name: &str) -> bool {
        let name = name.strip_prefix("*.").unwrap_or(name).to_ascii_lowercase();
        let is_within = |domain: &String| {
            let domain = domain.trim_start_matches('.').to_ascii_lowercase();
            name == domain || name.ends_with(&format!(".{domain}"))
        };
        self.permitted_domains.is_empty() || self.permitted_domains.iter().any(is_within)
    }
}
