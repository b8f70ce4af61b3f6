//! Names of roles, regions and identities, and their texts.

use identity::{Caller, Identity, InvalidIdentity, Peer, Role, is_reserved};
use rstest::rstest;

fn identity(role: Role, name: &str) -> Identity {
    Identity::new(role, "global", name).unwrap()
}

#[test]
fn every_role_has_a_name_that_is_read_back() {
    for role in Role::ALL {
        assert_eq!(role.as_str().parse(), Ok(role));
        let identity = identity(role, "a-1.B_2");
        assert_eq!(Identity::from_uri(&identity.uri()), Ok(identity));
    }
    let unknown = "root".parse::<Role>().unwrap_err().to_string();
    assert!(
        unknown.contains("\"root\"") && unknown.contains("gateway, broker"),
        "{unknown}"
    );
}

#[test]
fn a_role_of_a_service_knows_its_name() {
    assert_eq!(Role::Broker.service(), Some("eval-broker"));
    assert_eq!(Role::Node.service(), Some("client-node"));
    assert_eq!(Role::Operator.service(), None);
}

#[test]
fn an_identity_is_a_uri_and_a_dns_name() {
    let node = identity(Role::Node, "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
    assert_eq!(
        node.uri(),
        "spiffe://global.kafila/node/6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    );
    assert_eq!(node.dns_name(), "node.global.kafila");
    assert_eq!(
        node.own_dns_name().unwrap(),
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8.node.global.kafila"
    );
    assert_eq!(identity(Role::Node, "a.b").own_dns_name(), None);
    assert_eq!(
        node.to_string(),
        "node 6ba7b810-9dad-11d1-80b4-00c04fd430c8 of region global"
    );
}

#[rstest]
#[case::empty("")]
#[case::upper_case("Global")]
#[case::dot("eu.west")]
#[case::edge("-eu")]
#[case::space("eu west")]
#[case::slash("eu/west")]
#[case::long(&"a".repeat(64))]
fn a_region_is_a_dns_label(#[case] region: &str) {
    assert_eq!(
        Identity::new(Role::Gateway, region, "gw"),
        Err(InvalidIdentity::Region(region.to_owned()))
    );
}

#[rstest]
#[case::empty("")]
#[case::parent("..")]
#[case::slash("a/b")]
#[case::space("a b")]
#[case::percent("a%2fb")]
#[case::long(&"a".repeat(254))]
fn a_name_is_one_segment_of_a_path(#[case] name: &str) {
    assert_eq!(
        Identity::new(Role::Gateway, "global", name),
        Err(InvalidIdentity::Name(name.to_owned()))
    );
}

#[rstest]
#[case::scheme("https://global.kafila/node/n1")]
#[case::no_region("spiffe://kafila/node/n1")]
#[case::foreign_domain("spiffe://global.example/node/n1")]
#[case::glued_domain("spiffe://globalkafila/node/n1")]
#[case::no_name("spiffe://global.kafila/node")]
#[case::port("spiffe://global.kafila:1/node/n1")]
fn other_uris_are_no_identities(#[case] uri: &str) {
    assert_eq!(
        Identity::from_uri(uri),
        Err(InvalidIdentity::Uri(uri.to_owned()))
    );
}

#[rstest]
#[case::longer_path("spiffe://global.kafila/node/n1/gateway", "name")]
#[case::query("spiffe://global.kafila/node/n1?x", "name")]
#[case::role("spiffe://global.kafila/Node/n1", "role")]
#[case::region("spiffe://a.b.kafila/node/n1", "region")]
fn a_malformed_part_is_named(#[case] uri: &str, #[case] part: &str) {
    let error = Identity::from_uri(uri).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn names_of_roles_are_reserved() {
    for name in ["kafila", "gateway.global.kafila", "X.KAFILA", "a.kafila."] {
        assert!(is_reserved(name), "{name}");
    }
    for name in ["kafila.example.com", "notkafila", "localhost"] {
        assert!(!is_reserved(name), "{name}");
    }
}

#[test]
fn a_request_without_a_trace_of_its_sender_is_anonymous() {
    let mut extensions = http::Extensions::new();
    assert_eq!(Caller::of(&extensions), Caller::ANONYMOUS);
    let worker = Caller::new(Peer::Certified(identity(Role::Worker, "w1")));
    extensions.insert(worker.clone());
    assert_eq!(Caller::of(&extensions), worker);
    assert_eq!(worker.role(), Some(Role::Worker));
    assert!(!worker.is_development() && Caller::DEVELOPMENT.is_development());
}

#[test]
fn a_name_that_repeats_the_role_is_shown_once() {
    let identity = Identity::new(Role::Operator, "global", "operator").unwrap();
    assert_eq!(identity.to_string(), "operator of region global");
}
