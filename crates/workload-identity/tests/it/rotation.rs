//! Rotation by age.

use model::{Keyring, Timestamp, WorkloadIdentity};
use ring::rand::SystemRandom;
use workload_identity::keyring::{self, Due, KeyState, active, apply, due, states};
use workload_identity::{Jwks, KeyEncryptionKeys};

use crate::{DAY, KEY_A, KEY_B, day, grant, id, keys, ring_of};

fn due_of(ring: &Keyring, now: Timestamp) -> Due {
    due(ring, now, keys().current())
}

#[test]
fn the_first_key_signs_at_once() {
    let first = due_of(&Keyring::default(), day(0));
    assert_eq!(first.create, Some(day(0)));
    let random = SystemRandom::new();
    let ring = apply(
        &Keyring::default(),
        &first,
        (id(1), day(0)),
        &keys(),
        &random,
    )
    .unwrap();
    assert_eq!(active(&ring, day(0)).unwrap().id, id(1));
    assert!(due_of(&ring, day(0)).is_nothing());
}

#[test]
fn a_key_whose_beginning_is_ahead_of_the_clock_signs_if_there_is_no_other() {
    let ring = ring_of(&[1]);
    assert_eq!(active(&ring, day(0)).unwrap().id, id(1));
    assert_eq!(active(&Keyring::default(), day(0)), None);
}

#[test]
fn the_next_key_is_published_a_day_before_it_signs() {
    let ring = ring_of(&[0]);
    assert!(due_of(&ring, day(28)).is_nothing());
    let next = due_of(&ring, day(29));
    assert_eq!(next.create, Some(day(30)));
    let random = SystemRandom::new();
    let ring = apply(&ring, &next, (id(2), day(29)), &keys(), &random).unwrap();
    assert_eq!(active(&ring, day(29)).unwrap().id, id(1));
    assert_eq!(active(&ring, day(30)).unwrap().id, id(2));
    assert_eq!(Jwks::of(&ring).keys.len(), 2);
    let shown: Vec<KeyState> = states(&ring, day(29))
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    assert_eq!(shown, [KeyState::Active, KeyState::Next]);
    assert!(due_of(&ring, day(30)).is_nothing());
    // Nobody looked for long: still a day ahead of its use.
    assert_eq!(due_of(&ring_of(&[0]), day(90)).create, Some(day(91)));
}

#[test]
fn a_retired_key_is_published_until_its_last_token_has_expired() {
    let ring = ring_of(&[0, 30]);
    let until = Timestamp::from_secs(day(60).as_secs() + 3_600);
    assert_eq!(
        states(&ring, day(31))[0].1,
        KeyState::Retired {
            published_until: until
        }
    );
    // A token of the longest life, signed in the last moment.
    let random = SystemRandom::new();
    let pair = keyring::open(&ring.keys[0], &keys(), &random).unwrap();
    let longest = workload_identity::Grant {
        ttl: WorkloadIdentity::TTL_MAX,
        ..grant()
    };
    let last = Timestamp::from_secs(day(30).as_secs() - 1);
    let token = pair
        .sign(&longest.claims(last, "x".to_owned(), None), &random)
        .unwrap();
    let end = Timestamp::from_secs(last.as_secs() + 30 * DAY - 1);
    let mut at_end = due_of(&ring, end);
    assert_eq!(at_end.remove, []);
    assert!(Jwks::of(&ring).verify(token.expose(), end).is_ok());
    at_end = due_of(&ring, until);
    assert_eq!(at_end.remove, [id(1)]);
    let kept = apply(&ring, &at_end, (id(3), until), &keys(), &random).unwrap();
    let ids: Vec<_> = kept.keys.iter().map(|key| key.id).collect();
    // The second one is old enough for its successor.
    assert_eq!(ids, [id(2), id(3)]);
}

#[test]
fn keys_move_to_a_new_key_encryption_key() {
    let (ring, random) = (ring_of(&[0]), SystemRandom::new());
    let both = KeyEncryptionKeys::parse(&format!("{KEY_B}\n{KEY_A}")).unwrap();
    let reseal = due(&ring, day(1), both.current());
    assert_eq!(reseal.reseal, [id(1)]);
    let moved = apply(&ring, &reseal, (id(2), day(1)), &both, &random).unwrap();
    assert_eq!(moved.keys[0].public_key, ring.keys[0].public_key);
    let new = KeyEncryptionKeys::parse(KEY_B).unwrap();
    keyring::open(&moved.keys[0], &new, &random).unwrap();
    assert!(keyring::open(&moved.keys[0], &keys(), &random).is_err());
    // A gateway without the old key changes nothing.
    let without = due(&ring, day(1), new.current());
    assert!(apply(&ring, &without, (id(2), day(1)), &new, &random).is_err());
}

#[test]
fn keys_without_the_one_of_the_active_key_are_refused() {
    let of = |text: &str| KeyEncryptionKeys::parse(text).unwrap();
    let (ring, now) = (ring_of(&[0]), day(1));
    keyring::check(&ring, &keys(), now).unwrap();
    keyring::check(&Keyring::default(), &of(KEY_B), now).unwrap();
    let refused = keyring::check(&ring, &of(KEY_B), now).unwrap_err();
    let refused = refused.to_string();
    for part in [keys().current(), "give every gateway the same keys"] {
        assert!(refused.contains(part), "{refused}");
    }
    // While the cluster's key is replaced, a file has both.
    for both in [format!("{KEY_A}\n{KEY_B}"), format!("{KEY_B}\n{KEY_A}")] {
        keyring::check(&ring, &of(&both), now).unwrap();
    }
}

#[test]
fn the_number_of_keys_is_bounded() {
    let ring = ring_of(&[0; 16]);
    let next = due_of(&ring, day(29));
    assert!(next.create.is_some() && next.remove.is_empty());
    let random = SystemRandom::new();
    let same = apply(&ring, &next, (id(99), day(29)), &keys(), &random).unwrap();
    assert_eq!(same, ring);
}
