//! Identities in certificates: the URI, the DNS name of the role, refused forms.

use identity::{Identity, InvalidCertificate, InvalidIdentity, Role};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, SanType};

const NODE: &str = "spiffe://global.kafila/node/n1";
const NODE_NAME: &str = "node.global.kafila";

fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

fn dns(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

fn params(names: Vec<SanType>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.subject_alt_names = names;
    params
}

fn der(params: CertificateParams) -> Vec<u8> {
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().der().to_vec()
}

fn read(names: Vec<SanType>) -> Result<Identity, InvalidCertificate> {
    Identity::from_certificate(&der(params(names)))
}

#[test]
fn the_identity_is_the_uri() {
    let names = vec![
        dns("node.global.kafila"),
        dns("n1.node.global.kafila"),
        dns("localhost"),
        dns("n1.example.com"),
        uri(NODE),
        SanType::IpAddress([127, 0, 0, 1].into()),
    ];
    let identity = Identity::new(Role::Node, "global", "n1").unwrap();
    assert_eq!(read(names), Ok(identity));
}

#[test]
fn a_certificate_without_one_identity_is_refused() {
    assert_eq!(read(Vec::new()), Err(InvalidCertificate::NoUri));
    assert_eq!(
        read(vec![dns("gateway.global.kafila")]),
        Err(InvalidCertificate::NoUri)
    );
    assert_eq!(
        read(vec![uri(NODE), uri("https://example.com/")]),
        Err(InvalidCertificate::SeveralUris(2))
    );
    let foreign = "spiffe://example.com/node/n1";
    assert_eq!(
        read(vec![uri(foreign)]),
        Err(InvalidCertificate::Identity(InvalidIdentity::Uri(
            foreign.to_owned()
        )))
    );
    let unknown = read(vec![uri("spiffe://global.kafila/root/n1")]);
    assert!(
        matches!(
            unknown,
            Err(InvalidCertificate::Identity(InvalidIdentity::Role(_)))
        ),
        "{unknown:?}"
    );
}

#[test]
fn the_dns_name_of_another_role_or_region_is_refused() {
    for name in [
        "gateway.global.kafila",
        "node.eu.kafila",
        "n2.node.global.kafila",
        "*.global.kafila",
        "kafila",
    ] {
        let refused = read(vec![uri(NODE), dns(NODE_NAME), dns(name)]).unwrap_err();
        assert!(
            matches!(&refused, InvalidCertificate::ForeignDnsName { dns_name, .. } if dns_name == name),
            "{refused}"
        );
    }
}

#[test]
fn a_certificate_without_the_dns_name_of_its_role_is_refused() {
    let operator = "spiffe://global.kafila/operator/alice";
    for (of, names) in [
        (operator, vec![]),
        (operator, vec!["alice.operator.global.kafila"]),
        (operator, vec!["example.com"]),
        (NODE, vec!["n1.node.global.kafila"]),
    ] {
        let mut all = vec![uri(of)];
        all.extend(names.into_iter().map(dns));
        let identity = Identity::from_uri(of).unwrap();
        assert_eq!(read(all), Err(InvalidCertificate::NoRoleName { identity }));
    }
}

#[test]
fn the_subject_plays_no_role() {
    let mut params = params(vec![uri(NODE), dns(NODE_NAME)]);
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "gateway.global.kafila");
    let identity = Identity::from_certificate(&der(params)).unwrap();
    assert_eq!(identity.role(), Role::Node);
}

#[test]
fn a_ca_is_no_caller() {
    let mut params = params(vec![uri(NODE)]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    assert_eq!(
        Identity::from_certificate(&der(params)),
        Err(InvalidCertificate::Authority)
    );
}

#[test]
fn other_bytes_are_no_certificate() {
    let good = der(params(vec![uri(NODE)]));
    for bytes in [
        &b""[..],
        b"-----BEGIN CERTIFICATE-----",
        &good[..good.len() - 1],
    ] {
        let error = Identity::from_certificate(bytes).unwrap_err();
        assert!(matches!(error, InvalidCertificate::Encoding(_)), "{error}");
    }
    let mut longer = good;
    longer.push(0);
    assert_eq!(
        Identity::from_certificate(&longer),
        Err(InvalidCertificate::TrailingBytes(1))
    );
}
