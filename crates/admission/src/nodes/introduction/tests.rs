//! Introductions: uses and limits of tokens, repeated and stolen requests, renewals.

use model::JobKey;
use test_kit::{Stored, builders};

use super::*;

const NOW: Timestamp = Timestamp(1_000_000_000_000);

fn later(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

fn token_id(number: u128) -> IntroductionTokenId {
    IntroductionTokenId::from_random(number)
}

/// A store with the token 1 of this request.
fn stored(request: TokenRequest) -> Stored {
    let mut stored = Stored::default();
    put(&mut stored, 1, request);
    stored
}

fn put(stored: &mut Stored, number: u128, request: TokenRequest) {
    request.check().unwrap();
    let token = request.token(token_id(number), format!("hash {number}"), NOW);
    stored.commit(&[Write::Create {
        key: Key::IntroductionToken(token.id),
        entity: Entity::IntroductionToken(Box::new(token)),
    }]);
}

/// For one node, as a token without a number of uses is.
fn once() -> TokenRequest {
    TokenRequest::default()
}

fn unlimited() -> TokenRequest {
    TokenRequest {
        uses: Some(0),
        ..TokenRequest::default()
    }
}

/// A node with the key of this number, which shows a token.
fn request(token: u128, key: u128) -> Introduction {
    Introduction {
        token_id: token_id(token),
        secret_sha256: format!("hash {token}"),
        public_key_sha256: format!("key {key}"),
        key_node_id: NodeId::from_random(key),
        kept_node_id: None,
        node_pool: String::new(),
        node_name: String::new(),
        certified_until: later(9_000),
    }
}

/// Introduces a node and commits it.
fn join(stored: &mut Stored, request: &Introduction) -> Result<NodeId, IntroductionRefusal> {
    let granted = introduce(&stored.snapshot(), request, later(1))?;
    stored.commit(&granted.writes);
    Ok(granted.node_id)
}

fn uses(stored: &Stored, token: u128) -> u32 {
    let snapshot = stored.snapshot();
    snapshot
        .introduction_token(token_id(token))
        .unwrap()
        .value
        .uses
}

#[test]
fn a_token_introduces_as_many_nodes_as_it_may() {
    for limit in [1, 3] {
        let mut stored = stored(TokenRequest {
            uses: Some(limit),
            ..TokenRequest::default()
        });
        for key in 1..=u128::from(limit) {
            let joined = join(&mut stored, &request(1, key)).unwrap();
            assert_eq!(joined, NodeId::from_random(key));
        }
        assert_eq!(uses(&stored, 1), limit);
        let refused = join(&mut stored, &request(1, 99));
        assert_eq!(refused, Err(IntroductionRefusal::UsedUp));
    }
}

#[test]
fn without_a_limit_nodes_that_join_together_do_not_conflict() {
    let mut stored = stored(unlimited());
    let before = stored.snapshot();
    for key in 1..=20 {
        // All of them as of the same snapshot.
        let granted = introduce(&before, &request(1, key), NOW).unwrap();
        stored.commit(&granted.writes);
    }
    assert_eq!(stored.snapshot().node_introductions().count(), 20);
    assert_eq!(uses(&stored, 1), 0);
}

#[test]
fn a_repeated_request_gets_its_id_again_and_costs_no_use() {
    let mut stored = stored(once());
    let first = join(&mut stored, &request(1, 7)).unwrap();
    let again = join(&mut stored, &request(1, 7)).unwrap();
    assert_eq!((first, uses(&stored, 1)), (again, 1));
    // Until the token expires.
    let late = introduce(&stored.snapshot(), &request(1, 7), later(300));
    assert_eq!(late, Err(IntroductionRefusal::Expired));
}

#[test]
fn a_stolen_token_with_another_key_is_refused_after_its_use() {
    let mut stored = stored(once());
    join(&mut stored, &request(1, 7)).unwrap();
    let refused = join(&mut stored, &request(1, 8));
    assert_eq!(refused, Err(IntroductionRefusal::UsedUp));
}

#[test]
fn a_token_is_accepted_with_its_secret_until_it_expires() {
    let stored = stored(once());
    let at = |now| introduce(&stored.snapshot(), &request(1, 7), now);
    assert!(at(later(299)).is_ok(), "5 minutes by default");
    assert_eq!(at(later(300)), Err(IntroductionRefusal::Expired));
    let mut wrong = request(1, 7);
    wrong.secret_sha256 = "hash 2".to_owned();
    let refused = introduce(&stored.snapshot(), &wrong, NOW);
    assert_eq!(refused, Err(IntroductionRefusal::UnknownToken));
    let refused = introduce(&stored.snapshot(), &request(2, 7), NOW);
    assert_eq!(refused, Err(IntroductionRefusal::UnknownToken));
}

#[test]
fn a_token_for_one_node_gives_it_its_id_and_replaces_a_lost_key() {
    let own = NodeId::from_random(42);
    let for_own = TokenRequest {
        node_id: Some(own),
        ..once()
    };
    let mut stored = stored(for_own.clone());
    let mut asked = request(1, 7);
    asked.kept_node_id = Some(own);
    assert_eq!(join(&mut stored, &asked), Ok(own));
    // A second key with the same token is a stolen token.
    assert_eq!(
        join(&mut stored, &request(1, 8)),
        Err(IntroductionRefusal::UsedUp)
    );
    put(&mut stored, 2, for_own);
    assert_eq!(join(&mut stored, &request(2, 8)), Ok(own));
    let snapshot = stored.snapshot();
    let kept = &snapshot.node_introduction(own).unwrap().value;
    assert_eq!(kept.public_key_sha256, "key 8");
}

#[test]
fn a_node_comes_back_with_another_token_under_its_id() {
    let mut stored = stored(once());
    let first = join(&mut stored, &request(1, 7)).unwrap();
    put(&mut stored, 2, once());
    let mut again = request(2, 7);
    again.kept_node_id = Some(first);
    assert_eq!(join(&mut stored, &again), Ok(first));
    assert_eq!(uses(&stored, 2), 1);
}

#[test]
fn no_token_takes_over_another_node() {
    let mut stored = stored(unlimited());
    let victim = join(&mut stored, &request(1, 7)).unwrap();
    // The id follows from the key, so this is a forged request of a broken caller.
    let mut forged = request(1, 8);
    forged.key_node_id = victim;
    assert_eq!(join(&mut stored, &forged), Err(IntroductionRefusal::UsedUp));
    let mut foreign = request(1, 9);
    foreign.kept_node_id = Some(victim);
    let refused = join(&mut stored, &foreign).unwrap_err();
    assert_eq!(refused, IntroductionRefusal::OtherNode { kept: victim });
    assert!(refused.to_string().contains(&format!("-node={victim}")));
}

#[test]
fn two_nodes_cannot_share_the_last_use() {
    let stored = stored(once());
    let snapshot = stored.snapshot();
    let compares = |key| {
        let granted = introduce(&snapshot, &request(1, key), NOW).unwrap();
        let of_token = |write: &&Write| matches!(write.key(), Key::IntroductionToken(_));
        let write = granted.writes.iter().find(of_token).unwrap().clone();
        (write.expected_index(), write.is_compare())
    };
    // Both write the token, and compare the same revision.
    assert_eq!(compares(1), compares(2));
    assert!(!compares(1).1 && compares(1).0 > 0);
}

#[test]
fn a_renewal_needs_an_introduction_and_its_key() {
    let mut stored = stored(once());
    let node_id = join(&mut stored, &request(1, 7)).unwrap();
    let until = later(20_000);
    let writes = renew(&stored.snapshot(), node_id, "key 7", until).unwrap();
    stored.commit(&writes);
    let snapshot = stored.snapshot();
    let kept = &snapshot.node_introduction(node_id).unwrap().value;
    assert_eq!(
        (kept.certified_until, kept.introduced_at),
        (until, later(1))
    );
    let refused = renew(&snapshot, node_id, "key 8", until);
    assert_eq!(refused, Err(IntroductionRefusal::OtherKey(node_id)));
    let stranger = NodeId::from_random(8);
    let refused = renew(&snapshot, stranger, "key 7", until);
    assert_eq!(refused, Err(IntroductionRefusal::NotIntroduced(stranger)));
}

#[test]
fn the_token_of_a_node_is_usable_until_it_is_used_up_expired_or_deleted() {
    let mut stored = stored(TokenRequest {
        uses: Some(2),
        ..TokenRequest::default()
    });
    let node_id = join(&mut stored, &request(1, 7)).unwrap();
    let usable = |stored: &Stored, now| usable_token(&stored.snapshot(), node_id, now);
    assert_eq!(usable(&stored, later(1)), Some(token_id(1)));
    assert_eq!(usable(&stored, later(300)), None, "expired");
    join(&mut stored, &request(1, 8)).unwrap();
    assert_eq!(usable(&stored, later(1)), None, "used up");
    let unknown = NodeId::from_random(99);
    assert_eq!(usable_token(&stored.snapshot(), unknown, later(1)), None);
    put(&mut stored, 2, unlimited());
    join(&mut stored, &request(2, 7)).unwrap();
    assert_eq!(usable(&stored, later(1)), Some(token_id(2)));
    stored.delete(Key::IntroductionToken(token_id(2)));
    assert_eq!(usable(&stored, later(1)), None, "deleted");
}

#[test]
fn a_revoked_node_gets_no_certificate_by_a_token_of_its_own_either() {
    let mut stored = stored(once());
    let node_id = join(&mut stored, &request(1, 7)).unwrap();
    let own = TokenRequest {
        node_id: Some(node_id),
        ..once()
    };
    put(&mut stored, 2, own);
    let before = stored.snapshot();
    let revocation = revocation::revoke(&before, node_id, "", NOW);
    stored.commit(&revocation.change.writes());
    let refused = Err(IntroductionRefusal::Revoked(Revoked(node_id)));
    let snapshot = stored.snapshot();
    assert_eq!(
        renew(&snapshot, node_id, "key 7", later(1)).map(drop),
        refused
    );
    for token in [1, 2] {
        let joined = introduce(&snapshot, &request(token, 7), later(1)).map(drop);
        assert_eq!(joined, refused, "token {token}");
    }
    assert_eq!(uses(&stored, 2), 0);
    // As of a snapshot before the revocation, both compare it.
    let compare = Write::RequireAbsent {
        key: Key::NodeRevocation(node_id),
    };
    let renewed = renew(&before, node_id, "key 7", later(1)).unwrap();
    assert!(renewed.contains(&compare));
    let introduced = introduce(&before, &request(2, 7), later(1)).unwrap();
    assert!(introduced.writes.contains(&compare));
}

#[test]
fn a_node_registers_in_the_pool_and_under_the_name_of_its_token() {
    let mut stored = stored(TokenRequest {
        node_name: "gpu-1".to_owned(),
        node_pool: "gpu".to_owned(),
        ..once()
    });
    let node_id = join(&mut stored, &request(1, 7)).unwrap();
    let mut node = builders::node(1);
    let snapshot = stored.snapshot();
    let check = |node: &Node| check_record(&snapshot, node);
    assert_eq!(check(&node), Ok(()), "a node without an introduction");
    node.id = node_id;
    (node.name, node.node_pool) = ("gpu-1".to_owned(), "gpu".to_owned());
    assert_eq!(check(&node), Ok(()));
    for (name, pool) in [("other", "default"), ("", "")] {
        (node.name, node.node_pool) = (name.to_owned(), pool.to_owned());
        let errors = check(&node).unwrap_err();
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["node.node_pool", "node.name"]);
        assert!(
            errors.to_string().contains("node_pool = \"gpu\""),
            "{errors}"
        );
    }
}

#[test]
fn a_node_of_another_pool_or_name_than_its_tokens_costs_no_use() {
    let mut stored = stored(TokenRequest {
        node_name: "gpu-1".to_owned(),
        node_pool: "gpu".to_owned(),
        ..once()
    });
    let asked = |pool: &str, name: &str| Introduction {
        node_pool: pool.to_owned(),
        node_name: name.to_owned(),
        ..request(1, 7)
    };
    for (pool, name, field) in [
        ("default", "gpu-1", "node_pool"),
        ("gpu", "gpu-2", "node_name"),
    ] {
        let refused = join(&mut stored, &asked(pool, name)).unwrap_err();
        assert_eq!(refused.kind(), Kind::Invalid);
        assert_eq!(refused.field_errors().unwrap().0[0].field, field);
        assert_eq!(uses(&stored, 1), 0, "{field}");
    }
    let refused = join(&mut stored, &asked("default", "gpu-1")).unwrap_err();
    let fix = "set node_pool = \"gpu\" in the node's configuration";
    assert!(refused.to_string().contains(fix), "{refused}");
    // The holder of a wrong secret learns nothing of the token.
    let mut stranger = asked("default", "gpu-1");
    stranger.secret_sha256 = "hash 2".to_owned();
    let refused = join(&mut stored, &stranger);
    assert_eq!(refused, Err(IntroductionRefusal::UnknownToken));
    join(&mut stored, &asked("gpu", "gpu-1")).unwrap();
    assert_eq!(uses(&stored, 1), 1);
}

#[test]
fn a_wish_for_a_token_is_checked() {
    let node_id = Some(NodeId::from_random(1));
    let name = || "n1".to_owned();
    let day = Duration::from_secs(86_400);
    let table = [
        (once(), None),
        (TokenRequest::default(), None),
        (
            TokenRequest {
                uses: Some(MAX_USES),
                ..once()
            },
            None,
        ),
        (
            TokenRequest {
                ttl: Some(30 * day),
                ..once()
            },
            None,
        ),
        (
            TokenRequest {
                ttl: Some(31 * day),
                ..once()
            },
            Some("ttl"),
        ),
        (
            TokenRequest {
                ttl: Some(Duration::ZERO),
                ..once()
            },
            Some("ttl"),
        ),
        (
            TokenRequest {
                uses: Some(MAX_USES + 1),
                ..once()
            },
            Some("uses"),
        ),
        (TokenRequest { node_id, ..once() }, None),
        (
            TokenRequest {
                node_id,
                uses: Some(2),
                ..once()
            },
            Some("uses"),
        ),
        (
            TokenRequest {
                node_name: name(),
                ..once()
            },
            None,
        ),
        (
            TokenRequest {
                node_name: name(),
                uses: Some(0),
                ..once()
            },
            Some("uses"),
        ),
        (
            TokenRequest {
                node_name: "n".repeat(129),
                ..once()
            },
            Some("node_name"),
        ),
        (
            TokenRequest {
                node_pool: "gpu".to_owned(),
                ..once()
            },
            None,
        ),
        (
            TokenRequest {
                node_pool: "all".to_owned(),
                ..once()
            },
            Some("node_pool"),
        ),
        (
            TokenRequest {
                node_pool: "a b".to_owned(),
                ..once()
            },
            Some("node_pool"),
        ),
    ];
    for (request, field) in table {
        let errors = request.check().err().unwrap_or_default();
        let found = errors.0.first().map(|error| error.field.as_str());
        assert_eq!(found, field, "{request:?}: {errors}");
    }
}

#[test]
fn the_text_of_a_token_is_its_id_and_secret() {
    let text = token_text(token_id(5), "ab12");
    assert_eq!(read_token(&text), Some((token_id(5), "ab12")));
    assert_eq!(
        read_token(&format!("{text}\n")),
        Some((token_id(5), "ab12"))
    );
    let key = JobKey::new("default", "web").to_string();
    let bad = [
        "",
        "kafila-node-",
        "ab12",
        &key,
        &text[1..],
        &text[..text.len() - 4],
        &text[..text.len() - 5],
        "kafila-node-ééééééééééééééééééééééé",
    ];
    for text in bad {
        assert_eq!(read_token(text), None, "{text:?}");
    }
}
