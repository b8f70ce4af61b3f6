//! A CA: its creation, and its certificate and key read back.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, GeneralSubtree, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, NameConstraints, PublicKeyData as _,
};

use crate::description::Description;
use crate::dns_name::check_dns_name;
use crate::error::Error;
use crate::issued::Issued;
use crate::validity::{Moment, period};

/// The wish for a CA.
#[derive(Clone, Debug)]
pub struct AuthorityRequest {
    /// The subject: a name for people.
    pub common_name: String,
    pub days: u32,
    /// Certificates of the CA can only have DNS names in the domain of Kafila's roles, `localhost`, and
    /// `additional_domains`.
    pub is_constrained: bool,
    /// Domains, each with its subdomains.
    pub additional_domains: Vec<String>,
}

/// Creates a CA that signs certificates, but no further CA.
///
/// # Errors
/// The validity is out of range, or a domain is no DNS name.
pub fn create_authority(request: &AuthorityRequest, moment: Moment) -> Result<Issued, Error> {
    let (start, end) = period(moment.now, request.days)?;
    let mut params = CertificateParams::default();
    params.not_before = start;
    params.not_after = end;
    params.serial_number = Some(moment.serial.to_number());
    params.distinguished_name = rcgen::DistinguishedName::new();
    let name = request.common_name.as_str();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    if request.is_constrained {
        params.name_constraints = Some(constraints(&request.additional_domains)?);
    }
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Issued {
        certificate_pem: certificate.pem(),
        key_pem: key.serialize_pem(),
        not_after: end.unix_timestamp(),
    })
}

fn constraints(additional: &[String]) -> Result<NameConstraints, Error> {
    let mut permitted = Vec::new();
    for domain in [identity::RESERVED_DOMAIN, "localhost"] {
        permitted.push(GeneralSubtree::DnsName(domain.to_owned()));
    }
    for domain in additional {
        check_dns_name(domain)?;
        permitted.push(GeneralSubtree::DnsName(domain.clone()));
    }
    Ok(NameConstraints {
        permitted_subtrees: permitted,
        excluded_subtrees: Vec::new(),
    })
}

/// A CA that can issue certificates.
#[derive(Debug)]
pub struct Authority {
    pub(crate) issuer: Issuer<'static, KeyPair>,
    pub(crate) description: Description,
}

impl Authority {
    /// Reads a CA's certificate and key, both as PEM.
    ///
    /// # Errors
    /// The certificate is not one of a CA, or the key belongs to another one.
    pub fn read(certificate_pem: &str, key_pem: &str) -> Result<Self, Error> {
        let description = Description::read(certificate_pem)?;
        if !description.is_authority {
            return Err(Error::NotAnAuthority);
        }
        let key = KeyPair::from_pem(key_pem).map_err(Error::Key)?;
        if key.der_bytes() != description.public_key {
            return Err(Error::ForeignKey);
        }
        Ok(Self {
            issuer: Issuer::from_ca_cert_pem(certificate_pem, key)?,
            description,
        })
    }

    /// Returns the description of the CA's certificate.
    pub fn description(&self) -> &Description {
        &self.description
    }
}
