//! Another leader, and a leader that does not know yet that it is none.

use deployment_watcher::SERVICE;
use state::Key;
use test_kit::writes;

use crate::suite::{Suite, TIMEOUT, group, key, made};

#[tokio::test]
async fn the_next_leader_does_the_pending_work() {
    let suite = Suite::start().await;
    suite.put_job(&suite.job, false).await;
    suite.deploy(group()).await;
    suite.report(true).await;
    let mut first = suite.watcher().await;
    suite
        .wait("an evaluation", |snapshot| made(snapshot).pop())
        .await;
    first.drain.cancel();
    let ended = tokio::time::timeout(TIMEOUT, &mut first.running).await;
    ended.expect("it ends").unwrap().unwrap();

    // The next leader finds what happened without one.
    suite.succeed().await;
    let second = suite.watcher().await;
    suite
        .wait("a stable version", |snapshot| {
            snapshot.is_stable(&key(), 0).then_some(())
        })
        .await;
    assert_eq!(
        made(&suite.now().await).len(),
        1,
        "and what was done is not done again"
    );
    drop(second);
}

#[tokio::test]
async fn the_fence_refuses_the_writes_of_a_deposed_leader() {
    let suite = Suite::start().await;
    suite.put_job(&suite.job, false).await;
    suite.deploy(group()).await;
    let deposed = suite.watcher().await;
    suite.wait_for_leader(&deposed.address).await;
    let standby = suite.watcher().await;

    // Its key vanishes under it; its lease lives on, so it does not know.
    let snapshot = suite.now().await;
    let term = snapshot.leader(SERVICE).unwrap().create_index;
    suite
        .commit(|txn| {
            txn.add(&writes::delete(&Key::Election(SERVICE.to_owned()), term))
                .unwrap();
        })
        .await;
    suite.wait_for_leader(&standby.address).await;
    // Both see the verdict and ask for a look; only one of the two may write.
    suite.report(true).await;
    suite
        .wait("an evaluation", |snapshot| made(snapshot).pop())
        .await;
    suite.succeed().await;
    suite
        .wait("a stable version", |snapshot| {
            snapshot.is_stable(&key(), 0).then_some(())
        })
        .await;
    assert_eq!(made(&suite.now().await).len(), 1);
}
