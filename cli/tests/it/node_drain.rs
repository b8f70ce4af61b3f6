//! `kafila node drain`

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn scenario_035_a_drain_is_set_as_it_was_asked_for_and_unset() {
    let gateway = Gateway::start(FakeState::running()).await;
    let id = fixtures::NODE;
    for (flags, deadline_ns, ignores) in [
        ("", 3_600_000_000_000, false),
        ("-deadline 10m -ignore-system", 600_000_000_000, true),
        ("-force", -1_000_000_000, false),
        ("-no-deadline", 0, false),
    ] {
        let line = format!("node drain -enable -detach -yes {flags} -m disks -meta who=me 4d2b");
        let said = kafila(&line).at(&gateway.address).await;
        let expected = format!("Node {id:?} drain strategy set\n");
        assert_eq!(said.ended(0).stdout, expected);
        let node = gateway.state().nodes[0].clone();
        let spec = node.drain.unwrap().spec.unwrap();
        assert_eq!(
            (spec.deadline_ns, spec.ignore_system_jobs),
            (deadline_ns, ignores)
        );
        let meta = node.last_drain.unwrap().meta;
        assert_eq!((&*meta["message"], &*meta["who"]), ("disks", "me"));
    }
    for (flags, eligibility) in [("-keep-ineligible", "ineligible"), ("", "eligible")] {
        let line = format!("node drain -disable {flags} {id}");
        let said = kafila(&line).at(&gateway.address).await;
        let expected = format!("Node {id:?} drain strategy unset\n");
        assert_eq!(said.ended(0).stdout, expected);
        let node = gateway.state().nodes[0].clone();
        assert_eq!((node.drain, &*node.eligibility), (None, eligibility));
    }
    // It is over, and not because it is complete.
    let said = kafila("node drain -monitor 4d2b")
        .at(&gateway.address)
        .await;
    said.ended(1).printed(&[
        "Monitoring node \"4d2ba53b\"",
        "Drain of node \"4d2ba53b\" was canceled",
    ]);
}

#[tokio::test]
async fn an_abbreviated_id_needs_a_confirmation() {
    let gateway = Gateway::start(FakeState::running()).await;
    let line = "node drain -enable -detach 4d2b";
    for (answer, exit) in [("n\n", 0), ("", 1), ("maybe\n", 1)] {
        let said = kafila(line).stdin(answer).at(&gateway.address).await;
        said.ended(exit);
        assert!(gateway.state().nodes[0].drain.is_none(), "{answer:?}");
    }
    let said = kafila(line).stdin("y\n").at(&gateway.address).await;
    said.ended(0)
        .printed(&["Are you sure you want to enable drain mode for node"]);
    assert!(gateway.state().nodes[0].drain.is_some());
}

#[tokio::test]
async fn contradictory_flags_are_refused_before_a_request_is_sent() {
    let gateway = Gateway::start(FakeState::running()).await;
    for (words, part) in [
        ("4d2b", "-enable"),
        ("-enable -force -no-deadline 4d2b", "cannot be used with"),
        ("-enable -meta nothing 4d2b", "expected KEY=VALUE"),
        ("-enable -yes ffff", "ffff"),
    ] {
        let line = format!("node drain {words}");
        let said = kafila(&line).at(&gateway.address).await;
        said.ended(1).complained(&[part]);
    }
    assert!(gateway.state().nodes[0].drain.is_none());
}
