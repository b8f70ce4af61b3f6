//! Replay of committed changes.

use state::Change;
use store::Error;
use store::history::History;
use test_kit::writes;

use crate::support::{Backend, complete, create, done, eval, key, on_both, update};

on_both!(
    all_committed_changes_are_replayed,
    a_history_may_begin_in_the_middle,
    an_empty_store_has_no_history,
    a_compacted_history_is_an_error,
);

async fn all_committed_changes_are_replayed(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let mut expected = Vec::new();
    for number in 0..1_500 {
        expected.push(create(&writer, &eval(number)).await);
    }
    let changed = update(&writer, expected[0], &complete(eval(0))).await;
    let mut txn = writer.txn();
    txn.add(&writes::delete(&key(&eval(0)), changed)).unwrap();
    expected.extend([changed, done(writer.commit(&txn).await.unwrap())]);
    // A key outside the prefix moves the revision and is not replayed.
    backend
        .raw()
        .await
        .put("/elsewhere", "x", None)
        .await
        .unwrap();

    let mut history = History::from(&client, 1).await.unwrap();
    create(&writer, &eval(9_999)).await;
    let mut observed = Vec::new();
    let mut last = None;
    while let Some((revision, mut changes)) = history.next().await.unwrap() {
        observed.push(revision);
        assert_eq!(changes.len(), 1);
        last = changes.pop();
    }
    assert_eq!(observed, expected, "up to the revision of the start");
    assert_eq!(last, Some(Change::Delete { key: key(&eval(0)) }));
}

async fn a_history_may_begin_in_the_middle(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    create(&writer, &eval(1)).await;
    let second = create(&writer, &eval(2)).await;
    let mut history = History::from(&client, second).await.unwrap();
    assert_eq!(history.next().await.unwrap().unwrap().0, second);
    assert_eq!(history.next().await.unwrap(), None);
    assert_eq!(history.next().await.unwrap(), None);
}

async fn an_empty_store_has_no_history(backend: Backend) {
    let client = backend.client().await;
    assert_eq!(
        History::from(&client, 1)
            .await
            .unwrap()
            .next()
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        History::from(&client, 500)
            .await
            .unwrap()
            .next()
            .await
            .unwrap(),
        None
    );
}

async fn a_compacted_history_is_an_error(backend: Backend) {
    let client = backend.client().await;
    for number in 0..5 {
        create(&client.unfenced_writer(), &eval(number)).await;
    }
    backend.compact().await;
    let mut history = History::from(&client, 1).await.unwrap();
    assert!(matches!(history.next().await, Err(Error::Compacted { .. })));
}
