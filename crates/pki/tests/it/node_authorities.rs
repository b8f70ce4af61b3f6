//! The authority of nodes: requests, validity, and the limits of a stolen key.

use std::time::Duration;

use identity::{Identity, InvalidCertificate, Role};
use pki::{
    Authority, CertificateRequest, Description, Error, Issued, NodeAuthorityRequest,
    SigningRequest, create_key, create_node_authority, sign_request,
};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};

use crate::fixture::{DAY, NOW, Side, authority_request, create, der, moment, request, verify};

const HOUR: Duration = Duration::from_secs(3_600);

fn node_ca() -> (Issued, Authority) {
    let request = NodeAuthorityRequest {
        common_name: "Test node CA".to_owned(),
        days: 1_825,
        region: "global".to_owned(),
    };
    let created = create_node_authority(&request, moment(1)).unwrap();
    let (certificate, key) = (&created.certificate_pem, &created.key_pem);
    let authority = Authority::read_for_nodes(certificate, key, "global").unwrap();
    (created, authority)
}

fn node() -> Identity {
    request(Role::Node).identity
}

fn signing_request() -> SigningRequest {
    SigningRequest::read(&sign_request(&create_key().unwrap()).unwrap()).unwrap()
}

/// A certificate made with the key of a CA by another program, which checks nothing.
fn forge(ca: &Issued, names: Vec<SanType>) -> String {
    let key = KeyPair::from_pem(&ca.key_pem).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&ca.certificate_pem, key).unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names = names;
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    let key = KeyPair::generate().unwrap();
    params.signed_by(&key, &issuer).unwrap().pem()
}

fn uri(identity: &Identity) -> SanType {
    SanType::URI(identity.uri().as_str().try_into().unwrap())
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

#[test]
fn a_node_is_certified_for_its_key_and_time() {
    let (ca, authority) = node_ca();
    let request = signing_request();
    let certified = authority
        .certify(&request, &node(), HOUR, moment(2))
        .unwrap();
    assert_eq!(certified.not_after, NOW + 3_600);
    let pem = &certified.certificate_pem;
    let check = |side, at| verify(&ca.certificate_pem, pem, side, at);
    check(Side::Client, NOW).unwrap();
    check(Side::Server("one.node.global.kafila"), NOW - 60).unwrap();
    assert!(check(Side::Client, NOW + 3_601).is_err());
    assert_eq!(Identity::from_certificate(&der(pem)), Ok(node()));
    let described = Description::read(pem).unwrap();
    assert!(described.is_for_servers && described.is_for_clients && !described.is_authority);
    assert!(described.addresses.is_empty());
}

#[test]
fn a_certificate_of_a_node_ends_with_the_ca() {
    let (ca, authority) = node_ca();
    let end = Description::read(&ca.certificate_pem).unwrap().not_after;
    let request = signing_request();
    let mut late = moment(2);
    late.now = end - 60;
    let certified = authority.certify(&request, &node(), HOUR, late).unwrap();
    assert_eq!(certified.not_after, end);
    late.now = end;
    let error = authority
        .certify(&request, &node(), HOUR, late)
        .unwrap_err();
    assert!(matches!(error, Error::AuthorityExpired), "{error}");
}

#[test]
fn the_ca_of_nodes_issues_no_certificate_of_another_role_or_region() {
    let (_, authority) = node_ca();
    let elsewhere = Identity::new(Role::Node, "eu", "one").unwrap();
    for identity in Role::ALL
        .into_iter()
        .filter(|role| *role != Role::Node)
        .map(|role| request(role).identity)
        .chain([elsewhere])
    {
        let error = authority
            .certify(&signing_request(), &identity, HOUR, moment(2))
            .unwrap_err();
        assert!(
            matches!(error, Error::NotPermittedIdentity { .. }),
            "{error}"
        );
        let asked = CertificateRequest {
            identity,
            ..request(Role::Node)
        };
        let error = authority.issue(&asked, moment(2)).unwrap_err();
        assert!(
            matches!(error, Error::NotPermittedIdentity { .. }),
            "{error}"
        );
    }
}

#[test]
fn with_a_stolen_key_of_the_ca_of_nodes_only_nodes_can_be_forged() {
    let (ca, _) = node_ca();
    let accepts = |names: Vec<SanType>, side| {
        verify(&ca.certificate_pem, &forge(&ca, names), side, NOW).is_ok()
    };
    assert!(accepts(
        vec![uri(&node()), dns("node.global.kafila")],
        Side::Client
    ));
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Node) {
        let identity = request(role).identity;
        // The name constraints refuse the DNS name of the role, with which clients verify servers.
        let named = vec![uri(&identity), dns(&identity.dns_name())];
        assert!(!accepts(named, Side::Client), "{role}");
        // They do not bind URIs: without the DNS name there is no identity.
        let bare = vec![uri(&identity), dns("one.node.global.kafila")];
        assert!(accepts(bare.clone(), Side::Client), "{role}");
        let read = Identity::from_certificate(&der(&forge(&ca, bare)));
        assert!(
            matches!(read, Err(InvalidCertificate::ForeignDnsName { .. })),
            "{role}: {read:?}"
        );
        let bare = vec![uri(&identity)];
        let read = Identity::from_certificate(&der(&forge(&ca, bare)));
        assert_eq!(read, Err(InvalidCertificate::NoRoleName { identity }));
    }
    // Names and addresses by which commands verify a gateway.
    for name in ["localhost", "kafila.example.com", "node.eu.kafila"] {
        assert!(!accepts(vec![uri(&node()), dns(name)], Side::Server(name)));
    }
    for (address, name) in [
        (SanType::IpAddress([10, 0, 0, 1].into()), "10.0.0.1"),
        (
            SanType::IpAddress(std::net::Ipv6Addr::LOCALHOST.into()),
            "::1",
        ),
    ] {
        assert!(!accepts(vec![uri(&node()), address], Side::Server(name)));
    }
}

#[test]
fn another_ca_is_none_of_nodes() {
    let constrained = pki::AuthorityRequest {
        is_constrained: true,
        ..authority_request()
    };
    for request in [authority_request(), constrained] {
        let (ca, _) = create(&request);
        let read = Authority::read_for_nodes(&ca.certificate_pem, &ca.key_pem, "global");
        let error = read.unwrap_err();
        assert!(matches!(error, Error::NotANodeAuthority { .. }), "{error}");
    }
    let (ca, _) = node_ca();
    let read = Authority::read_for_nodes(&ca.certificate_pem, &ca.key_pem, "eu");
    let error = read.unwrap_err().to_string();
    assert!(error.contains("node.eu.kafila"), "{error}");
}

#[test]
fn a_signing_request_proves_its_key() {
    let key = create_key().unwrap();
    let der = sign_request(&key).unwrap();
    let first = SigningRequest::read(&der).unwrap();
    // ECDSA signatures differ, and the key stays.
    let again = SigningRequest::read(&sign_request(&key).unwrap()).unwrap();
    assert_eq!(first.public_key(), again.public_key());
    assert_ne!(first.public_key(), signing_request().public_key());
    let mut forged = der.clone();
    *forged.last_mut().unwrap() ^= 1;
    for bytes in [&b""[..], b"PEM", &der[..der.len() - 1], &forged] {
        let error = SigningRequest::read(bytes).unwrap_err();
        assert!(matches!(error, Error::SigningRequest(_)), "{error}");
    }
    assert!(matches!(sign_request("no key"), Err(Error::Key(_))));
}

#[test]
fn names_in_a_signing_request_are_ignored() {
    let (_, authority) = node_ca();
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![uri(&request(Role::Operator).identity)];
    let key = KeyPair::generate().unwrap();
    let asked = params.serialize_request(&key).unwrap();
    let asked = SigningRequest::read(asked.der()).unwrap();
    let certified = authority.certify(&asked, &node(), HOUR, moment(2)).unwrap();
    let described = Description::read(&certified.certificate_pem).unwrap();
    assert_eq!(described.uris, [node().uri()]);
    assert!(described.not_after - described.not_before < DAY);
}
