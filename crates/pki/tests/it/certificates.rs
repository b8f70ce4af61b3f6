//! Certificates of every role, as verifiers accept and refuse them.

use std::net::IpAddr;

use identity::{Identity, Role};
use pki::{AuthorityRequest, CertificateRequest, Description, Error};
use rstest::rstest;

use crate::fixture::{DAY, NOW, Side, authority_request, create, der, moment, request, verify};

#[test]
fn a_certificate_of_every_role_is_accepted_and_has_its_identity() {
    let (ca, authority) = create(&authority_request());
    for role in Role::ALL {
        let issued = authority.issue(&request(role), moment(2)).unwrap();
        let check = |side| verify(&ca.certificate_pem, &issued.certificate_pem, side, NOW);
        check(Side::Client).unwrap();
        let identity = Identity::from_certificate(&der(&issued.certificate_pem)).unwrap();
        assert_eq!(identity, request(role).identity);
        // The key of a person cannot pose as a server.
        let name: &'static str = Box::leak(identity.dns_name().into_boxed_str());
        assert_eq!(
            check(Side::Server(name)).is_ok(),
            role.is_server(),
            "{role}"
        );
    }
}

#[test]
fn servers_are_verified_by_role_and_a_node_by_its_id() {
    let (ca, authority) = create(&authority_request());
    let node = authority.issue(&request(Role::Node), moment(2)).unwrap();
    let accepts = |name| {
        let side = Side::Server(name);
        verify(&ca.certificate_pem, &node.certificate_pem, side, NOW).is_ok()
    };
    assert!(accepts("node.global.kafila") && accepts("one.node.global.kafila"));
    for other in [
        "two.node.global.kafila",
        "gateway.global.kafila",
        "node.eu.kafila",
        "localhost",
        "127.0.0.1",
    ] {
        assert!(!accepts(other), "{other}");
    }
}

#[test]
fn the_certificate_of_another_ca_or_time_is_refused() {
    let (ca, authority) = create(&authority_request());
    let (other, _) = create(&authority_request());
    let issued = authority.issue(&request(Role::Worker), moment(2)).unwrap();
    let check = |ca: &str, at| verify(ca, &issued.certificate_pem, Side::Client, at);
    assert!(
        check(&ca.certificate_pem, NOW - 60).is_ok(),
        "a clock that is behind"
    );
    assert!(check(&ca.certificate_pem, NOW - DAY).is_err());
    assert!(check(&ca.certificate_pem, NOW + 366 * DAY).is_err());
    assert!(check(&other.certificate_pem, NOW).is_err());
}

#[test]
fn a_gateway_has_the_names_and_addresses_that_are_asked_for() {
    let (ca, authority) = create(&authority_request());
    let asked = CertificateRequest {
        dns_names: vec!["kafila.example.com".to_owned(), "*.example.org".to_owned()],
        addresses: vec![IpAddr::from([10, 0, 0, 1]), IpAddr::from([127, 0, 0, 1])],
        ..request(Role::Gateway)
    };
    let issued = authority.issue(&asked, moment(2)).unwrap();
    for name in [
        "gateway.global.kafila",
        "localhost",
        "kafila.example.com",
        "gw.example.org",
        "10.0.0.1",
        "127.0.0.1",
        "::1",
    ] {
        let side = Side::Server(name);
        verify(&ca.certificate_pem, &issued.certificate_pem, side, NOW).unwrap();
    }
    let described = Description::read(&issued.certificate_pem).unwrap();
    assert_eq!(described.addresses.len(), 3, "{:?}", described.addresses);
    assert_eq!(described.identity, Ok(asked.identity));
    assert!(described.is_for_servers && described.is_for_clients && !described.is_authority);
}

#[rstest]
#[case::of_a_role("gateway.global.kafila")]
#[case::of_another_node("two.node.global.kafila")]
#[case::wildcard("*.global.kafila")]
#[case::domain("KAFILA")]
fn a_name_that_belongs_to_a_role_cannot_be_added(#[case] name: &str) {
    let (_, authority) = create(&authority_request());
    let asked = CertificateRequest {
        dns_names: vec![name.to_owned()],
        ..request(Role::Node)
    };
    let error = authority.issue(&asked, moment(2)).unwrap_err();
    assert!(
        matches!(&error, Error::ReservedName(of) if of == name),
        "{error}"
    );
}

#[rstest]
#[case("")]
#[case("a b")]
#[case("-a.example.com")]
#[case("a..example.com")]
#[case("10.0.0.1")]
#[case("https://example.com")]
#[case("a.*.example.com")]
fn a_malformed_dns_name_is_named(#[case] name: &str) {
    let (_, authority) = create(&authority_request());
    let asked = CertificateRequest {
        dns_names: vec![name.to_owned()],
        ..request(Role::Gateway)
    };
    let error = authority.issue(&asked, moment(2)).unwrap_err();
    assert!(
        matches!(&error, Error::DnsName(of) if of == name),
        "{error}"
    );
}

#[test]
fn name_constraints_hold_for_the_issuer_and_for_verifiers() {
    let constrained = AuthorityRequest {
        is_constrained: true,
        additional_domains: vec!["example.com".to_owned()],
        ..authority_request()
    };
    let (ca, authority) = create(&constrained);
    let permitted = Description::read(&ca.certificate_pem).unwrap();
    assert_eq!(
        permitted.permitted_domains,
        ["kafila", "localhost", "example.com"]
    );
    let named = |name: &str| CertificateRequest {
        dns_names: vec![name.to_owned()],
        addresses: vec![IpAddr::from([10, 0, 0, 1])],
        ..request(Role::Gateway)
    };
    for name in ["example.com", "gw.example.com", "*.example.com"] {
        let issued = authority.issue(&named(name), moment(2)).unwrap();
        let side = Side::Server("gateway.global.kafila");
        verify(&ca.certificate_pem, &issued.certificate_pem, side, NOW).unwrap();
    }
    for name in ["example.org", "notexample.com"] {
        let error = authority.issue(&named(name), moment(2)).unwrap_err();
        assert!(matches!(error, Error::NotPermitted { .. }), "{error}");
    }
}

#[test]
fn a_certificate_does_not_outlive_its_ca() {
    let short = AuthorityRequest {
        days: 30,
        ..authority_request()
    };
    let (_, authority) = create(&short);
    let error = authority
        .issue(&request(Role::Node), moment(2))
        .unwrap_err();
    assert!(
        matches!(error, Error::OutlivesAuthority { days: 365, max: 30 }),
        "{error}"
    );
    let asked = CertificateRequest {
        days: 30,
        ..request(Role::Node)
    };
    assert!(authority.issue(&asked, moment(2)).is_ok());
    let mut late = moment(3);
    late.now = NOW + 31 * DAY;
    let error = authority.issue(&asked, late).unwrap_err();
    assert!(matches!(error, Error::AuthorityExpired), "{error}");
}

#[test]
fn a_person_has_no_address() {
    let (_, authority) = create(&authority_request());
    let asked = CertificateRequest {
        addresses: vec![IpAddr::from([10, 0, 0, 1])],
        ..request(Role::Operator)
    };
    let error = authority.issue(&asked, moment(2)).unwrap_err();
    assert!(matches!(error, Error::AddressOfClient(_)), "{error}");
}

#[test]
fn the_user_of_etcd_is_the_name_of_its_client() {
    let (_, authority) = create(&authority_request());
    for (role, subject) in [
        (Role::EtcdClient, "CN=one"),
        (Role::Etcd, "CN=etcd.global.kafila"),
    ] {
        let issued = authority.issue(&request(role), moment(2)).unwrap();
        let described = Description::read(&issued.certificate_pem).unwrap();
        assert_eq!(described.subject, subject);
    }
}

#[test]
fn a_key_does_not_show_in_logs() {
    let (created, authority) = create(&authority_request());
    let shown = format!("{created:?} {authority:?}");
    let secret = created.key_pem.lines().nth(1).unwrap();
    assert!(
        !shown.contains(secret) && !shown.contains("PRIVATE"),
        "{shown}"
    );
}
