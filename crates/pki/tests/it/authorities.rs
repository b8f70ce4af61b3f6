//! Authorities: keys, serial numbers, validity and constraints.

use identity::{Identity, InvalidCertificate, Role};
use pki::{Authority, AuthorityRequest, Description, Error, create_authority};

use crate::fixture::{DAY, NOW, authority_request, create, der, moment, request};

#[test]
fn a_ca_says_what_it_is() {
    let (created, _) = create(&authority_request());
    let described = Description::read(&created.certificate_pem).unwrap();
    assert!(described.is_authority);
    assert_eq!(described.subject, "CN=Test CA");
    assert_eq!(described.issuer, "CN=Test CA");
    assert_eq!(described.not_after, NOW + 1_825 * DAY);
    assert!(described.not_before < NOW && described.not_before > NOW - DAY);
    assert!(described.permitted_domains.is_empty());
    assert_eq!(described.identity, Err(InvalidCertificate::Authority));
}

#[test]
fn two_cas_differ_in_key_and_serial_number() {
    let first = create_authority(&authority_request(), moment(1)).unwrap();
    let second = create_authority(&authority_request(), moment(u128::MAX)).unwrap();
    assert_ne!(first.key_pem, second.key_pem);
    let serial = |pem: &str| Description::read(pem).unwrap().serial;
    assert_eq!(
        serial(&first.certificate_pem),
        "40:00:00:00:00:00:00:00:00:00:00:00:00:00:00:01"
    );
    assert_eq!(
        serial(&second.certificate_pem),
        "7f:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff"
    );
}

#[test]
fn the_key_of_another_ca_is_refused() {
    let (first, _) = create(&authority_request());
    let (second, _) = create(&authority_request());
    let error = Authority::read(&first.certificate_pem, &second.key_pem).unwrap_err();
    assert!(matches!(error, Error::ForeignKey), "{error}");
    let error = Authority::read(&first.key_pem, &first.key_pem).unwrap_err();
    assert!(matches!(error, Error::NoCertificate), "{error}");
    let error = Authority::read(&first.certificate_pem, &first.certificate_pem).unwrap_err();
    assert!(matches!(error, Error::Key(_)), "{error}");
}

#[test]
fn a_certificate_that_is_no_ca_issues_nothing() {
    let (_, authority) = create(&authority_request());
    let leaf = authority.issue(&request(Role::Gateway), moment(2)).unwrap();
    let error = Authority::read(&leaf.certificate_pem, &leaf.key_pem).unwrap_err();
    assert!(matches!(error, Error::NotAnAuthority), "{error}");
    let identity = Identity::from_certificate(&der(&leaf.certificate_pem));
    assert_eq!(identity.unwrap(), request(Role::Gateway).identity);
}

#[test]
fn a_validity_has_bounds() {
    for days in [0, 36_501, u32::MAX] {
        let asked = AuthorityRequest {
            days,
            ..authority_request()
        };
        let error = create_authority(&asked, moment(1)).unwrap_err();
        assert!(matches!(error, Error::Days { .. }), "{days}: {error}");
    }
}

#[test]
fn a_domain_of_a_constraint_is_a_dns_name() {
    let asked = AuthorityRequest {
        is_constrained: true,
        additional_domains: vec!["exa mple.com".to_owned()],
        ..authority_request()
    };
    let error = create_authority(&asked, moment(1)).unwrap_err();
    assert!(
        matches!(&error, Error::DnsName(name) if name == "exa mple.com"),
        "{error}"
    );
}
