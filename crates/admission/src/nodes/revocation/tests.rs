//! Revocations of nodes, and the compare that guards later writes.

use test_kit::{Stored, builders};

use super::*;

const NOW: Timestamp = Timestamp(7_000);

fn put(stored: &mut Stored, node_id: NodeId, reason: &str) {
    let revocation = revoke(&stored.snapshot(), node_id, reason, NOW);
    stored.commit(&revocation.change.writes());
}

#[test]
fn a_node_is_revoked_until_it_is_reinstated() {
    let mut stored = Stored::default();
    let node = builders::node(1);
    stored.put_node(&node);
    assert_eq!(check(&stored.snapshot(), node.id), Ok(()));
    put(&mut stored, node.id, "stolen");
    let snapshot = stored.snapshot();
    assert_eq!(check(&snapshot, node.id), Err(Revoked(node.id)));
    assert_eq!(guard(&snapshot, node.id), Err(Revoked(node.id)));
    assert_eq!(check(&snapshot, builders::node(2).id), Ok(()));
    let record = &snapshot.node_revocation(node.id).unwrap().value;
    let expected = NodeRevocation {
        revoked_at: NOW,
        node_name: node.name.clone(),
        reason: "stolen".to_owned(),
    };
    assert_eq!(*record, expected);

    // The first reason stays.
    let again = revoke(&snapshot, node.id, "sold", Timestamp(8_000));
    let modify_index = snapshot.node_revocation(node.id).unwrap().modify_index;
    assert_eq!(again.change, OneWrite::Unchanged { modify_index });
    assert_eq!(again.node_name, node.name);

    let write = reinstate(&snapshot, node.id).unwrap();
    stored.commit(&[write]);
    assert_eq!(check(&stored.snapshot(), node.id), Ok(()));
    let again = reinstate(&stored.snapshot(), node.id);
    assert_eq!(again, Err(NotRevoked(node.id)));
}

#[test]
#[should_panic(expected = "exists")]
fn the_compare_of_an_older_snapshot_fails_after_a_revocation() {
    let mut stored = Stored::default();
    let node_id = builders::node(1).id;
    let guard = guard(&stored.snapshot(), node_id).unwrap();
    put(&mut stored, node_id, "");
    stored.commit(&[guard]);
}

#[test]
fn a_refused_node_gets_the_command_that_reinstates_it() {
    let node_id = builders::node(1).id;
    let refusal = Revoked(node_id);
    assert_eq!(refusal.kind(), Kind::Denied);
    let command = format!("kafila node introduction reinstate {node_id}");
    assert!(refusal.to_string().contains(&command), "{refusal}");
    assert_eq!(NotRevoked(node_id).kind(), Kind::NotFound);
}

#[test]
fn a_reason_has_a_length_limit() {
    assert_eq!(check_reason(&"x".repeat(MAX_REASON_BYTES)), Ok(()));
    let refused = check_reason(&"x".repeat(MAX_REASON_BYTES + 1)).unwrap_err();
    assert_eq!(refused.0[0].field, "reason");
}
