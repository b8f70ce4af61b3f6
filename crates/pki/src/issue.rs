//! Certificates for identities.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use identity::{Identity, Role};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::authority::Authority;
use crate::dns_name::check_dns_name;
use crate::error::Error;
use crate::issued::Issued;
use crate::validity::{Moment, period};

/// The wish for a certificate.
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
        let mut params = CertificateParams::default();
        params.not_before = start;
        params.not_after = end;
        params.serial_number = Some(moment.serial.to_number());
        params.distinguished_name = DistinguishedName::new();
        let subject = subject(&request.identity);
        params.distinguished_name.push(DnType::CommonName, subject);
        params.subject_alt_names = self.names(request)?;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if request.identity.role().is_server() {
            let server = ExtendedKeyUsagePurpose::ServerAuth;
            params.extended_key_usages.push(server);
        }
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Issued {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
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

    fn names(&self, request: &CertificateRequest) -> Result<Vec<SanType>, Error> {
        let identity = &request.identity;
        let mut dns_names = vec![identity.dns_name()];
        dns_names.extend(identity.own_dns_name());
        if is_on_localhost(identity.role()) {
            dns_names.push("localhost".to_owned());
        }
        for name in &request.dns_names {
            check_dns_name(name)?;
            if !identity.may_have(name) {
                return Err(Error::ReservedName(name.clone()));
            }
            if !self.description.permits(name) {
                return Err(Error::NotPermitted {
                    name: name.clone(),
                    permitted: self.description.permitted_domains.clone(),
                });
            }
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
