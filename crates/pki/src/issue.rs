//! Certificates for identities.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use identity::{Identity, Role};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::authority::Authority;
use crate::dns_name::check_dns_name;
use crate::error::Error;
use crate::issued::{Certified, Issued};
use crate::signing_request::SigningRequest;
use crate::validity::{Moment, period, validity};

/// The request for a certificate.
#[derive(Clone, Debug)]
pub struct CertificateRequest {
    pub identity: Identity,
    pub days: u32,
    /// DNS names beyond those of the identity.
    pub dns_names: Vec<String>,
    pub addresses: Vec<IpAddr>,
}

impl Authority {
    /// Creates a key and a certificate for it.
    ///
    /// # Errors
    /// The CA expires first, or a name is malformed, reserved, or outside its name constraints.
    pub fn issue(&self, request: &CertificateRequest, moment: Moment) -> Result<Issued, Error> {
        let (start, end) = period(moment.now, request.days)?;
        self.check_end(end.unix_timestamp(), request.days, moment.now)?;
        let mut params = params(&request.identity, self.names(request)?, moment);
        (params.not_before, params.not_after) = (start, end);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Issued {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            not_after: end.unix_timestamp(),
        })
    }

    /// Creates a certificate for the key of a signing request. All else in the request is ignored: names
    /// are those of `identity`. The certificate ends after `valid_for`, or with the CA.
    ///
    /// # Errors
    /// The CA has expired, or permits no such name.
    pub fn certify(
        &self,
        request: &SigningRequest,
        identity: &Identity,
        valid_for: Duration,
        moment: Moment,
    ) -> Result<Certified, Error> {
        let authority_end = self.description.not_after;
        if authority_end <= moment.now {
            return Err(Error::AuthorityExpired);
        }
        let (start, end) = validity(moment.now, valid_for, authority_end);
        let unnamed = CertificateRequest {
            identity: identity.clone(),
            days: 0,
            dns_names: Vec::new(),
            addresses: Vec::new(),
        };
        let mut params = params(identity, self.names(&unnamed)?, moment);
        (params.not_before, params.not_after) = (start, end);
        let certificate = params.signed_by(&request.public_key, &self.issuer)?;
        Ok(Certified {
            certificate_pem: certificate.pem(),
            not_after: end.unix_timestamp(),
        })
    }

    fn check_end(&self, end: i64, days: u32, now: i64) -> Result<(), Error> {
        let authority_end = self.description.not_after;
        if end <= authority_end {
            return Ok(());
        }
        let max = (authority_end - now).max(0) / SECONDS_PER_DAY;
        match u32::try_from(max) {
            Ok(max) if max > 0 => Err(Error::OutlivesAuthority { days, max }),
            _ => Err(Error::AuthorityExpired),
        }
    }

    fn check_permitted(&self, name: &str) -> Result<(), Error> {
        if self.description.permits(name) {
            return Ok(());
        }
        Err(Error::NotPermitted {
            name: name.to_owned(),
            permitted: self.description.permitted_domains.clone(),
        })
    }

    fn names(&self, request: &CertificateRequest) -> Result<Vec<SanType>, Error> {
        let identity = &request.identity;
        let mut dns_names = vec![identity.dns_name()];
        dns_names.extend(identity.own_dns_name());
        // The CA of nodes has none for other roles.
        let name = identity.dns_name();
        if !self.description.permits(&name) {
            let permitted = self.description.permitted_domains.clone();
            return Err(Error::NotPermittedIdentity { name, permitted });
        }
        if is_on_localhost(identity.role()) {
            dns_names.push("localhost".to_owned());
        }
        for name in &request.dns_names {
            check_dns_name(name)?;
            if !identity.may_have(name) {
                return Err(Error::ReservedName(name.clone()));
            }
            self.check_permitted(name)?;
            dns_names.push(name.clone());
        }
        let mut addresses = Vec::new();
        if is_on_localhost(identity.role()) {
            addresses.extend([
                IpAddr::from(Ipv4Addr::LOCALHOST),
                Ipv6Addr::LOCALHOST.into(),
            ]);
        }
        addresses.extend(&request.addresses);
        if let Some(address) = addresses.first()
            && !identity.role().is_server()
        {
            return Err(Error::AddressOfClient(*address));
        }
        dedup(&mut dns_names);
        dedup(&mut addresses);
        let mut names = vec![SanType::URI(identity.uri().as_str().try_into()?)];
        for name in dns_names {
            names.push(SanType::DnsName(name.as_str().try_into()?));
        }
        names.extend(addresses.into_iter().map(SanType::IpAddress));
        Ok(names)
    }
}

/// Returns a certificate of `identity` without its validity.
fn params(identity: &Identity, names: Vec<SanType>, moment: Moment) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.serial_number = Some(moment.serial.to_number());
    params.distinguished_name = DistinguishedName::new();
    let subject = subject(identity);
    params.distinguished_name.push(DnType::CommonName, subject);
    params.subject_alt_names = names;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    if identity.role().is_server() {
        let server = ExtendedKeyUsagePurpose::ServerAuth;
        params.extended_key_usages.push(server);
    }
    params.use_authority_key_identifier_extension = true;
    params
}

const SECONDS_PER_DAY: i64 = 86_400;

/// Tells whether clients find servers of this role at `localhost`: the command finds a gateway there,
/// and services etcd. All other servers are verified by the DNS name of their role, so a node's
/// certificate is none for a gateway on the same machine.
fn is_on_localhost(role: Role) -> bool {
    matches!(role, Role::Gateway | Role::Etcd)
}

/// Returns the subject's common name. etcd takes that of a client for the name of its user.
fn subject(identity: &Identity) -> String {
    match identity.role() {
        Role::EtcdClient => identity.name().to_owned(),
        _ => identity.dns_name(),
    }
}

/// Drops repeated items, and keeps the order.
fn dedup<T: PartialEq + Clone>(items: &mut Vec<T>) {
    let mut kept: Vec<T> = Vec::new();
    for item in items.drain(..) {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    *items = kept;
}
