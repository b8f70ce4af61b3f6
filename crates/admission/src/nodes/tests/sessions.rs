//! Sessions: a node acts for itself, with its certificate and its secret.

use identity::{Caller, Identity, Peer, Role};
use model::{NodeId, Timestamp};
use test_kit::{Stored, builders};

use crate::nodes::revocation::{Revoked, revoke};
use crate::nodes::session::{SessionRefusal, check_self, open};
use model::refusal::{Kind, Refusal as _};

fn caller(role: Role, name: &str) -> Caller {
    Caller::new(Peer::Certified(
        Identity::new(role, "global", name).unwrap(),
    ))
}

fn node_caller(node_id: NodeId) -> Caller {
    caller(Role::Node, &node_id.to_string())
}

#[test]
fn a_node_acts_for_the_node_in_its_certificate_only() {
    let (own, other) = (builders::node(1).id, builders::node(2).id);
    assert_eq!(check_self(&node_caller(own), own), Ok(()));
    let upper_case = own.to_string().to_uppercase();
    assert_eq!(check_self(&caller(Role::Node, &upper_case), own), Ok(()));
    assert_eq!(check_self(&Caller::DEVELOPMENT, own), Ok(()));

    let own_name = own.to_string();
    for stranger in [
        node_caller(other),
        caller(Role::Node, "n1"),
        caller(Role::Gateway, &own_name),
        caller(Role::Operator, &own_name),
        Caller::ANONYMOUS,
    ] {
        let refusal = check_self(&stranger, own).unwrap_err();
        assert_eq!(refusal.kind(), Kind::Denied);
        let text = refusal.to_string();
        assert!(
            text.contains(&stranger.to_string()) && text.contains(&own_name),
            "{text}"
        );
    }
}

#[test]
fn a_session_needs_the_certificate_and_the_secret() {
    let mut stored = Stored::default();
    let (one, two) = (builders::node(1), builders::node(2));
    stored.put_node(&one);
    stored.put_node(&two);
    let snapshot = stored.snapshot();
    let (id, caller) = (one.id.to_string(), node_caller(one.id));
    let opened = open(&snapshot, &caller, &id, &one.secret).unwrap();
    assert_eq!(opened.value.id, one.id);

    let refused = |caller: Caller, id: NodeId, secret: &str| {
        open(&snapshot, &caller, &id.to_string(), secret).unwrap_err()
    };
    assert!(matches!(
        refused(node_caller(two.id), one.id, &one.secret),
        SessionRefusal::ForeignNode { node_id, .. } if node_id == one.id
    ));
    assert_eq!(
        refused(caller.clone(), one.id, &two.secret),
        SessionRefusal::WrongSecret(one.id)
    );
    let unknown = builders::node(3).id;
    assert_eq!(
        refused(node_caller(unknown), unknown, &one.secret),
        SessionRefusal::Unknown(unknown)
    );
    // A node learns nothing about nodes that it is not.
    assert!(matches!(
        refused(caller, unknown, &one.secret),
        SessionRefusal::ForeignNode { .. }
    ));
}

#[test]
fn a_revoked_node_has_no_session_whether_registered_or_not() {
    let mut stored = Stored::default();
    let (one, unknown) = (builders::node(1), builders::node(3));
    stored.put_node(&one);
    for id in [one.id, unknown.id] {
        let revocation = revoke(&stored.snapshot(), id, "", Timestamp(1));
        stored.commit(&revocation.change.writes());
        let opened = open(
            &stored.snapshot(),
            &node_caller(id),
            &id.to_string(),
            &one.secret,
        );
        let refusal = opened.unwrap_err();
        assert_eq!(refusal, SessionRefusal::Revoked(Revoked(id)));
        assert_eq!(refusal.kind(), Kind::Denied);
    }
    // Other callers do not learn that it is revoked.
    let (id, stranger) = (one.id.to_string(), node_caller(unknown.id));
    let opened = open(&stored.snapshot(), &stranger, &id, &one.secret);
    assert!(matches!(opened, Err(SessionRefusal::ForeignNode { .. })));
}
