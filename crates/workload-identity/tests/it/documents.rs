//! The published documents.

use rstest::rstest;
use serde_json::{Value, json};
use workload_identity::discovery::issuer_problem;
use workload_identity::jwks::DocumentError;
use workload_identity::{Discovery, Jwks};

use crate::{id, ring_of};

#[test]
fn every_key_is_published_without_its_private_part() {
    let ring = ring_of(&[0, 30]);
    let text = Jwks::of(&ring).to_json();
    let document: Value = serde_json::from_str(&text).unwrap();
    let keys = document["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 2);
    for (position, key) in keys.iter().enumerate() {
        let mut names: Vec<&str> = key
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["alg", "crv", "kid", "kty", "use", "x", "y"]);
        assert_eq!(key["kid"], id(position as u128 + 1).to_string());
        assert_eq!(
            (&key["kty"], &key["crv"], &key["use"]),
            (&json!("EC"), &json!("P-256"), &json!("sig"))
        );
        // 32 bytes.
        assert_eq!(key["x"].as_str().unwrap().len(), 43);
    }
    assert_eq!(Jwks::parse(text.as_bytes()).unwrap(), Jwks::of(&ring));
}

#[test]
fn keys_of_other_kinds_are_skipped_and_other_texts_refused() {
    let ring = ring_of(&[0]);
    let mut document: Value = serde_json::from_str(&Jwks::of(&ring).to_json()).unwrap();
    let rsa =
        json!({"kty": "RSA", "n": "AQ", "e": "AQAB", "alg": "RS256", "use": "sig", "kid": "1"});
    document["keys"].as_array_mut().unwrap().push(rsa);
    let parsed = Jwks::parse(document.to_string().as_bytes()).unwrap();
    assert_eq!(parsed, Jwks::of(&ring));
    for (text, error) in [
        ("", DocumentError::Malformed),
        ("{}", DocumentError::Malformed),
        ("{\"keys\": 1}", DocumentError::Malformed),
        (&" ".repeat(70_000), DocumentError::TooLarge),
    ] {
        assert_eq!(Jwks::parse(text.as_bytes()).unwrap_err(), error);
    }
}

#[test]
fn the_openid_document_leads_to_the_keys() {
    let document = Discovery::new("https://kafila.example:8443/eu").to_json();
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(
        document,
        json!({
            "issuer": "https://kafila.example:8443/eu",
            "jwks_uri": "https://kafila.example:8443/eu/.well-known/jwks.json",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    );
}

#[rstest]
#[case("https://kafila.example", true)]
#[case("http://10.0.0.1:4647/x", true)]
#[case("kafila.example", false)]
#[case("https://", false)]
#[case("https:///x", false)]
#[case("https://kafila.example/", false)]
#[case("https://kafila.example?x", false)]
#[case("https://a b", false)]
fn an_issuer_is_a_plain_url(#[case] issuer: &str, #[case] is_usable: bool) {
    assert_eq!(issuer_problem(issuer).is_none(), is_usable, "{issuer}");
}
