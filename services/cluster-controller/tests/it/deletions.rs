//! A gateway that died between the two transactions of a deletion.

use std::time::Duration;

use model::{Namespace, NodePool};
use state::Key;
use test_kit::wait_for;
use test_kit::writes;

use crate::suite::{Suite, TIMEOUT};

#[tokio::test]
async fn an_interrupted_deletion_is_undone() {
    let suite = Suite::start().await;
    let namespace = Namespace {
        name: "team".to_owned(),
        deleting: true,
        ..Namespace::default()
    };
    let pool = NodePool {
        deleting: true,
        description: "with gpus".to_owned(),
        ..NodePool::named("gpu")
    };
    suite
        .commit(|txn| {
            let key = Key::Namespace("team".to_owned());
            txn.add(&writes::create(&key, &namespace)).unwrap();
            txn.add(&writes::create(&Key::NodePool("gpu".to_owned()), &pool))
                .unwrap();
        })
        .await;
    let edit = |config: &mut cluster_controller::Config| {
        config.deletion_timeout = Duration::from_millis(500);
    };
    let _controller = suite.controller_with(edit).await;
    wait_for("both to be back", TIMEOUT, async || {
        let snapshot = suite.now().await;
        let namespace = &snapshot.namespace("team")?.value;
        let pool = &snapshot.node_pool("gpu")?.value;
        (!namespace.deleting && !pool.deleting).then_some(())
    })
    .await;
    let snapshot = suite.now().await;
    let kept = &snapshot.node_pool("gpu").unwrap().value;
    assert_eq!(kept.description, "with gpus", "nothing else has changed");
}
