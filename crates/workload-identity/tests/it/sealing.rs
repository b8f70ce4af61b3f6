//! Key-encryption keys and sealed private keys.

use ring::rand::SystemRandom;
use rstest::rstest;
use workload_identity::{KeyEncryptionKeys, KeyError, keyring};

use crate::{KEY_A, KEY_B, id, keys, ring_of};

#[rstest]
#[case::base64(KEY_A)]
#[case::base64_without_padding("YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE")]
#[case::hexadecimal("6161616161616161616161616161616161616161616161616161616161616161")]
#[case::with_comments("# made on Monday\n\nYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=  \n")]
fn a_key_is_read_in_each_form(#[case] text: &str) {
    let parsed = KeyEncryptionKeys::parse(text).unwrap();
    assert_eq!(parsed.current(), keys().current());
}

#[rstest]
#[case::empty("\n# nothing\n", KeyError::Empty)]
#[case::short("YWFh", KeyError::Line { line: 1 })]
#[case::text("\nhunter2hunter2hunter2hunter2hunter2", KeyError::Line { line: 2 })]
fn a_text_that_is_no_key_is_refused_without_showing_it(
    #[case] text: &str,
    #[case] error: KeyError,
) {
    let refused = KeyEncryptionKeys::parse(text).unwrap_err();
    assert_eq!(refused, error);
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
}

#[test]
fn the_number_of_keys_is_bounded() {
    let text = format!("{KEY_A}\n").repeat(9);
    assert_eq!(
        KeyEncryptionKeys::parse(&text).unwrap_err(),
        KeyError::TooMany
    );
}

#[test]
fn a_sealed_key_opens_with_its_key_alone_and_under_its_own_id() {
    let ring = ring_of(&[0]);
    let (key, random) = (&ring.keys[0], SystemRandom::new());
    keyring::open(key, &keys(), &random).unwrap();
    let other = KeyEncryptionKeys::parse(KEY_B).unwrap();
    let refused = keyring::open(key, &other, &random).unwrap_err();
    assert!(matches!(refused, KeyError::Unknown { .. }), "{refused}");
    // The ciphertext of one key under the id of another.
    let swapped = model::SigningKey {
        id: id(9),
        ..key.clone()
    };
    let refused = keyring::open(&swapped, &keys(), &random).unwrap_err();
    assert_eq!(refused, KeyError::Damaged { id: id(9) });
    let mut damaged = key.clone();
    damaged.private_key.ciphertext = "AAAA".to_owned();
    let refused = keyring::open(&damaged, &keys(), &random).unwrap_err();
    assert_eq!(refused, KeyError::Damaged { id: id(1) });
}

#[test]
fn a_private_key_is_in_no_output() {
    let ring = ring_of(&[0]);
    let pair = keyring::open(&ring.keys[0], &keys(), &SystemRandom::new()).unwrap();
    let ciphertext = &ring.keys[0].private_key.ciphertext;
    for shown in [
        format!("{ring:?}"),
        format!("{pair:?}"),
        format!("{:?}", keys()),
    ] {
        assert!(!shown.contains(ciphertext) && shown.len() < 700, "{shown}");
        assert!(
            !shown.contains("YWFhYWFh") && !shown.contains("97, 97"),
            "{shown}"
        );
    }
}
