//! Claims, signatures, verification.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Timestamp;
use proptest::prelude::*;
use ring::rand::SystemRandom;
use rstest::rstest;
use serde_json::{Value, json};
use workload_identity::renewal::times_of;
use workload_identity::{Grant, Jwks, VerifyError, Workload, keyring, renewal_at};

use crate::{day, grant, keys, ring_of};

fn part(token: &str, position: usize) -> Value {
    let part = token.split('.').nth(position).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn signed(grant: &Grant, issuer: Option<&str>) -> (Jwks, String) {
    let ring = ring_of(&[0]);
    let random = SystemRandom::new();
    let pair = keyring::open(&ring.keys[0], &keys(), &random).unwrap();
    let claims = grant.claims(day(0), "unique".to_owned(), issuer);
    let token = pair.sign(&claims, &random).unwrap();
    assert_eq!(format!("{token:?}"), "Token(…)");
    (Jwks::of(&ring), token.expose().to_owned())
}

#[test]
fn a_token_has_the_claims_that_roles_of_vault_and_consul_bind() {
    let (keys, token) = signed(&grant(), Some("https://kafila.example"));
    assert_eq!(
        part(&token, 0),
        json!({"alg": "ES256", "typ": "JWT", "kid": crate::id(1).to_string()})
    );
    let claims = json!({
        "iss": "https://kafila.example",
        "sub": "global:default:web:front:server:vault_default",
        "aud": "vault.io",
        "iat": 1_700_000_000,
        "nbf": 1_700_000_000,
        "exp": 1_700_003_600,
        "jti": "unique",
        "nomad_namespace": "default",
        "nomad_job_id": "web",
        "nomad_allocation_id": grant().alloc_id.to_string(),
        "nomad_task": "server",
    });
    assert_eq!(part(&token, 1), claims);
    let verified = keys.verify(&token, day(0)).unwrap();
    let times = (day(0), Timestamp::from_secs(1_700_003_600));
    assert_eq!(times_of(&token), Some(times));
    assert_eq!(times_of("a.b.c"), None);
    assert_eq!(serde_json::to_value(verified).unwrap(), claims);
}

#[test]
fn a_token_of_a_service_names_it_and_extra_claims_appear_when_they_are_set() {
    let of_service = Grant {
        workload: Workload::Service {
            task: None,
            name: "db".to_owned(),
        },
        audience: vec!["a".to_owned(), "b".to_owned()],
        vault_role: Some("reader".to_owned()),
        vault_namespace: Some("team".to_owned()),
        consul_namespace: Some("eu".to_owned()),
        ..grant()
    };
    let (_, token) = signed(&of_service, None);
    let claims = part(&token, 1);
    assert_eq!(claims["sub"], "global:default:web:front:db:vault_default");
    assert_eq!(claims["nomad_service"], "db");
    assert_eq!(claims["aud"], json!(["a", "b"]));
    assert_eq!(claims["vault_role"], "reader");
    assert_eq!(claims["vault_namespace"], "team");
    assert_eq!(claims["consul_namespace"], "eu");
    assert_eq!(
        (&claims["iss"], &claims["nomad_task"]),
        (&Value::Null, &Value::Null)
    );
}

#[rstest]
#[case::in_its_life(1_700_000_000, None)]
#[case::by_a_clock_that_is_a_little_behind(1_699_999_940, None)]
#[case::too_early(1_699_999_939, Some(VerifyError::Early))]
#[case::in_its_last_second(1_700_003_599, None)]
#[case::expired(1_700_003_600, Some(VerifyError::Expired))]
fn a_token_counts_in_its_life(#[case] seconds: u64, #[case] error: Option<VerifyError>) {
    let (keys, token) = signed(&grant(), None);
    let verified = keys.verify(&token, Timestamp::from_secs(seconds));
    assert_eq!(verified.err(), error);
}

#[test]
fn a_changed_token_and_a_foreign_key_are_refused() {
    let (keys, token) = signed(&grant(), None);
    let parts: Vec<&str> = token.split('.').collect();
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let kid = crate::id(1).to_string();
    let mut claims = part(&token, 1);
    claims["nomad_job_id"] = "other".into();
    let claims = encode(claims);
    let none = encode(json!({"alg": "none", "kid": kid}));
    let unknown = encode(json!({"alg": "ES256", "kid": "other"}));
    for (changed, error) in [
        (
            format!("{}.{claims}.{}", parts[0], parts[2]),
            VerifyError::Signature,
        ),
        (format!("{none}.{}.", parts[1]), VerifyError::Algorithm),
        (
            format!("{unknown}.{}.{}", parts[1], parts[2]),
            VerifyError::UnknownKey,
        ),
        (format!("{}.{}", parts[0], parts[1]), VerifyError::Malformed),
        (
            format!("{}.{}.{}", parts[0], parts[1], "x".repeat(20_000)),
            VerifyError::Malformed,
        ),
        (String::new(), VerifyError::Malformed),
    ] {
        assert_eq!(
            keys.verify(&changed, day(0)).unwrap_err(),
            error,
            "{changed}"
        );
    }
    // Another cluster's key with the same id.
    let foreign = Jwks::of(&ring_of(&[0]));
    assert_eq!(
        foreign.verify(&token, day(0)).unwrap_err(),
        VerifyError::Signature
    );
}

#[rstest]
#[case::without_jitter(3_600, 0.0, 1_800)]
#[case::with_all_of_it(3_600, 1.0, 1_620)]
#[case::not_at_once(4, 0.5, 10)]
fn a_token_is_renewed_at_half_of_its_life(
    #[case] ttl: u64,
    #[case] jitter: f64,
    #[case] wait: u64,
) {
    let issued = Timestamp::from_secs(1_000);
    let expires = Timestamp::from_secs(1_000 + ttl);
    assert_eq!(
        renewal_at(issued, expires, jitter),
        Timestamp::from_secs(1_000 + wait)
    );
}

proptest! {
    #[test]
    fn no_text_makes_verification_panic(
        document in any::<Vec<u8>>(),
        token in "[a-zA-Z0-9_.-]{0,80}",
        header in "\\PC{0,20}",
    ) {
        let _ = Jwks::parse(&document);
        let keys = Jwks::of(&ring_of(&[0]));
        prop_assert!(keys.verify(&token, day(0)).is_err());
        let header = URL_SAFE_NO_PAD.encode(format!("{{\"alg\":\"ES256\",\"kid\":{header:?}}}"));
        let token = format!("{header}.{token}");
        prop_assert!(keys.verify(&token, day(0)).is_err());
    }
}
