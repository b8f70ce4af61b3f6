//! A CA: its creation, and its certificate and key read back.

use identity::{Identity, Role};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, GeneralSubtree, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, NameConstraints, PublicKeyData as _,
};

use crate::description::Description;
use crate::dns_name::check_dns_name;
use crate::error::Error;
use crate::issued::Issued;
use crate::validity::{Moment, period};

/// The request for a CA.
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
    let constraints = if request.is_constrained {
        Some(constraints(&request.additional_domains)?)
    } else {
        None
    };
    create(&request.common_name, request.days, constraints, moment)
}

/// The request for a CA of nodes.
#[derive(Clone, Debug)]
pub struct NodeAuthorityRequest {
    /// The subject: a name for people.
    pub common_name: String,
    pub days: u32,
    pub region: String,
}

/// Creates a CA whose certificates verifiers accept for nodes of one region only: its name constraints
/// permit the DNS names of nodes, and no address.
///
/// # Errors
/// The validity is out of range, or the region is no DNS label.
pub fn create_node_authority(
    request: &NodeAuthorityRequest,
    moment: Moment,
) -> Result<Issued, Error> {
    let constraints = NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName(nodes_domain(&request.region)?)],
        // Without these, any address would do: a constraint binds only names of its own kind.
        excluded_subtrees: vec![
            GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix([0; 4], 0)),
            GeneralSubtree::IpAddress(CidrSubnet::from_v6_prefix([0; 16], 0)),
        ],
    };
    create(
        &request.common_name,
        request.days,
        Some(constraints),
        moment,
    )
}

/// Returns the domain of the nodes of a region, `node.<region>.kafila`.
fn nodes_domain(region: &str) -> Result<String, Error> {
    Ok(Identity::new(Role::Node, region, "any")?.dns_name())
}

fn create(
    common_name: &str,
    days: u32,
    constraints: Option<NameConstraints>,
    moment: Moment,
) -> Result<Issued, Error> {
    let (start, end) = period(moment.now, days)?;
    let mut params = CertificateParams::default();
    params.not_before = start;
    params.not_after = end;
    params.serial_number = Some(moment.serial.to_number());
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.name_constraints = constraints;
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

    /// As [`Self::read`], for a CA that can issue certificates for nodes of `region` and for nothing else:
    /// a process that answers strangers must hold no other.
    ///
    /// # Errors
    /// Those of [`Self::read`], and a CA with other name constraints.
    pub fn read_for_nodes(
        certificate_pem: &str,
        key_pem: &str,
        region: &str,
    ) -> Result<Self, Error> {
        let authority = Self::read(certificate_pem, key_pem)?;
        let domain = nodes_domain(region)?;
        if authority.description.permitted_domains != [domain.as_str()] {
            return Err(Error::NotANodeAuthority { domain });
        }
        Ok(authority)
    }

    /// Returns the description of the CA's certificate.
    pub fn description(&self) -> &Description {
        &self.description
    }
}
