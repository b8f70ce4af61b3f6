//! Transactions: all or nothing, at one revision, and only when all compares hold.

use std::error::Error as _;

use state::{Entity, Key};
use store::txn::Expected;
use store::{ClientOptions, Commit, Error, Fence, Limits};
use test_kit::builders::service;
use test_kit::etcd::Etcd;
use test_kit::proxy::Mode;
use test_kit::writes;

use crate::support::{
    Backend, WAIT_LIMIT, complete, connect, create, done, eval, impatient, key, on_both, update,
};

on_both!(
    an_object_is_created_changed_and_deleted,
    everything_in_one_transaction_has_one_revision,
    a_key_that_exists_is_not_created_again,
    a_key_changed_meanwhile_is_not_overwritten,
    every_failed_compare_is_named,
    compares_guard_writes_of_other_keys,
    a_fence_of_a_past_term_fails_the_transaction,
    a_transaction_as_large_as_allowed_is_accepted,
    limits_are_probed_without_a_write,
    a_commit_without_an_answer_is_unknown,
    two_prefixes_do_not_see_each_other,
);

async fn an_object_is_created_changed_and_deleted(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let created = create(&writer, &eval(1)).await;
    let changed = update(&writer, created, &complete(eval(1))).await;
    assert!(changed > created);
    let stored = client.get(&key(&eval(1))).await.unwrap().unwrap();
    assert_eq!(stored.entity, Entity::Eval(Box::new(complete(eval(1)))));
    assert_eq!(
        (stored.create_revision, stored.mod_revision),
        (created, changed)
    );

    let mut txn = writer.txn();
    txn.add(&writes::delete(&key(&eval(1)), changed)).unwrap();
    let deleted = done(writer.commit(&txn).await.unwrap());
    assert_eq!(client.get(&key(&eval(1))).await.unwrap(), None);
    assert_eq!(client.current_revision().await.unwrap(), deleted);
}

async fn everything_in_one_transaction_has_one_revision(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let job = service("web", 1);
    let mut txn = writer.txn();
    txn.add(&writes::create(&Key::Job(job.key()), &job))
        .unwrap();
    txn.add(&writes::create(&Key::JobVersion(job.key(), 0), &job))
        .unwrap();
    txn.add(&writes::create(&key(&eval(1)), &eval(1))).unwrap();
    let revision = done(writer.commit(&txn).await.unwrap());
    for key in [
        Key::Job(job.key()),
        Key::JobVersion(job.key(), 0),
        key(&eval(1)),
    ] {
        let stored = client.get(&key).await.unwrap().unwrap();
        assert_eq!(
            (stored.create_revision, stored.mod_revision),
            (revision, revision)
        );
    }
}

async fn a_key_that_exists_is_not_created_again(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let created = create(&writer, &eval(1)).await;
    let mut txn = writer.txn();
    txn.add(&writes::create(&key(&eval(1)), &complete(eval(1))))
        .unwrap();
    txn.add(&writes::create(&key(&eval(2)), &eval(2))).unwrap();
    let Commit::Conflict(conflict) = writer.commit(&txn).await.unwrap() else {
        panic!()
    };
    assert_eq!(conflict.failed.len(), 1);
    let failed = &conflict.failed[0];
    assert_eq!(
        (&failed.key, failed.expected),
        (&key(&eval(1)), Expected::Absent)
    );
    assert_eq!(
        (failed.create_revision, failed.mod_revision),
        (created, created)
    );
    assert!(!conflict.is_fenced());
    assert_eq!(conflict.revision, created, "a conflict writes nothing");
    assert_eq!(client.get(&key(&eval(2))).await.unwrap(), None);
}

async fn a_key_changed_meanwhile_is_not_overwritten(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let created = create(&writer, &eval(1)).await;
    let changed = update(&writer, created, &complete(eval(1))).await;
    let mut late = writer.txn();
    late.add(&writes::update(&key(&eval(1)), created, &eval(1)))
        .unwrap();
    let Commit::Conflict(conflict) = writer.commit(&late).await.unwrap() else {
        panic!()
    };
    assert_eq!(conflict.failed[0].mod_revision, changed);
    let mut gone = writer.txn();
    gone.add(&writes::delete(&key(&eval(1)), created)).unwrap();
    assert!(writer.commit(&gone).await.unwrap().revision().is_none());
    let stored = client.get(&key(&eval(1))).await.unwrap().unwrap();
    assert_eq!(stored.entity, Entity::Eval(Box::new(complete(eval(1)))));
}

async fn every_failed_compare_is_named(backend: Backend) {
    let writer = backend.client().await.unfenced_writer();
    let first = create(&writer, &eval(1)).await;
    let second = create(&writer, &eval(2)).await;
    let mut txn = writer.txn();
    txn.add(&writes::require_unchanged(&key(&eval(1)), first))
        .unwrap();
    txn.add(&writes::require_unchanged(&key(&eval(2)), first))
        .unwrap();
    txn.add(&writes::require_absent(&key(&eval(1))))
        .expect_err("it is already required to be something else");
    txn.add(&writes::update(&key(&eval(3)), second, &eval(3)))
        .unwrap();
    let Commit::Conflict(conflict) = writer.commit(&txn).await.unwrap() else {
        panic!()
    };
    let failed: Vec<_> = conflict.failed.iter().map(|failed| &failed.key).collect();
    assert_eq!(failed, [&key(&eval(2)), &key(&eval(3))]);
    assert_eq!(conflict.failed[1].mod_revision, 0, "there is no such key");
}

async fn compares_guard_writes_of_other_keys(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let guard = create(&writer, &eval(1)).await;
    let guarded = || {
        let mut txn = writer.txn();
        txn.add(&writes::require_unchanged(&key(&eval(1)), guard))
            .unwrap();
        txn.add(&writes::require_absent(&key(&eval(9)))).unwrap();
        txn
    };
    let mut first = guarded();
    first
        .add(&writes::create(&key(&eval(2)), &eval(2)))
        .unwrap();
    done(writer.commit(&first).await.unwrap());
    update(&writer, guard, &complete(eval(1))).await;
    let mut second = guarded();
    second
        .add(&writes::create(&key(&eval(3)), &eval(3)))
        .unwrap();
    assert!(writer.commit(&second).await.unwrap().revision().is_none());
}

async fn a_fence_of_a_past_term_fails_the_transaction(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let leader = model::LeaderInfo {
        address: "http://a".to_owned(),
        replica: "a".to_owned(),
    };
    let election = Key::Election("eval-broker".to_owned());
    let mut elected = writer.txn();
    elected.add(&writes::create(&election, &leader)).unwrap();
    let term = done(writer.commit(&elected).await.unwrap());
    let fence = Fence {
        service: "eval-broker".to_owned(),
        create_revision: term,
    };
    let fenced = |number| {
        let mut txn = writer.txn();
        txn.fence(&fence)
            .unwrap()
            .add(&writes::create(&key(&eval(number)), &eval(number)))
            .unwrap();
        txn
    };
    done(writer.commit(&fenced(1)).await.unwrap());

    let mut next = writer.txn();
    next.add(&writes::delete(&election, term)).unwrap();
    done(writer.commit(&next).await.unwrap());
    let Commit::Conflict(conflict) = writer.commit(&fenced(2)).await.unwrap() else {
        panic!()
    };
    assert!(conflict.is_fenced());
    done(writer.commit(&elected).await.unwrap());
    let Commit::Conflict(other) = writer.commit(&fenced(3)).await.unwrap() else {
        panic!()
    };
    assert!(
        other.is_fenced(),
        "the same leader in a later term has another fence"
    );
}

async fn a_transaction_as_large_as_allowed_is_accepted(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let mut many = writer.txn();
    for number in 0..1_000 {
        many.add(&writes::create(&key(&eval(number)), &eval(number)))
            .unwrap();
    }
    assert!(
        many.add(&writes::create(&key(&eval(1_000)), &eval(1_000)))
            .is_err()
    );
    done(writer.commit(&many).await.unwrap());

    let mut large = writer.txn();
    let mut number = 2_000;
    loop {
        let mut eval = eval(number);
        eval.status_description = "x".repeat(50_000);
        if large.add(&writes::create(&key(&eval), &eval)).is_err() {
            break;
        }
        number += 1;
    }
    assert!(large.byte_count() > 1_000_000, "{}", large.byte_count());
    done(writer.commit(&large).await.unwrap());
}

async fn a_commit_without_an_answer_is_unknown(backend: Backend) {
    let proxy = backend.proxy().await;
    let client = impatient(&proxy).await;
    let writer = client.unfenced_writer();
    create(&writer, &eval(1)).await;
    let mut txn = writer.txn();
    txn.add(&writes::create(&key(&eval(2)), &eval(2))).unwrap();
    proxy.set(Mode::HoldAnswers);
    let error = writer.commit(&txn).await.unwrap_err();
    assert!(error.is_unknown() && error.is_retriable(), "{error}");
    let found = test_kit::wait_for("the write", WAIT_LIMIT, async || {
        backend.client().await.get(&key(&eval(2))).await.unwrap()
    });
    found.await;

    // This request never arrives; the client cannot tell the difference.
    proxy.set(Mode::Hold);
    let mut lost = writer.txn();
    lost.add(&writes::create(&key(&eval(3)), &eval(3))).unwrap();
    let error = writer.commit(&lost).await.unwrap_err();
    assert!(error.is_unknown(), "{error}");
}

async fn two_prefixes_do_not_see_each_other(backend: Backend) {
    let options = |prefix: &str| ClientOptions {
        prefix: prefix.to_owned(),
        ..Default::default()
    };
    let first = connect(&backend.endpoint(), options("/a")).await;
    let second = connect(&backend.endpoint(), options("/b/")).await;
    create(&first.unfenced_writer(), &eval(1)).await;
    assert_eq!(second.get(&key(&eval(1))).await.unwrap(), None);
    create(&second.unfenced_writer(), &eval(1)).await;
}

#[tokio::test]
async fn an_unreachable_store_received_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let unused = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let writer = connect(&unused, ClientOptions::default())
        .await
        .unfenced_writer();
    let mut txn = writer.txn();
    txn.add(&writes::create(&key(&eval(1)), &eval(1))).unwrap();
    let error = writer.commit(&txn).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    let text = format!("{error}: {}", error.source().unwrap());
    assert!(text.contains(&unused), "names the address: {text}");
    assert!(text.contains("Connection refused"), "says why: {text}");
    assert!(!text.contains("::"), "no types of Rust: {text}");
}

async fn limits_are_probed_without_a_write(backend: Backend) {
    let client = backend.client().await;
    let before = client.current_revision().await.unwrap();
    client.probe_limits().await.unwrap();
    assert_eq!(client.current_revision().await.unwrap(), before);
    let options = ClientOptions {
        limits: Limits {
            max_ops: 4_000,
            ..Limits::DEFAULT
        },
        ..ClientOptions::default()
    };
    let greedy = connect(&backend.endpoint(), options).await;
    let error = greedy.probe_limits().await.unwrap_err();
    assert!(matches!(error, Error::LimitsTooLow { .. }), "{error:?}");
}

#[tokio::test]
async fn a_limit_of_bytes_that_is_too_low_is_found_without_a_write() {
    if !test_kit::etcd::available() {
        return;
    }
    // The default of etcd.
    let etcd = Etcd::start_with(&["--max-request-bytes", "1572864"])
        .await
        .unwrap();
    let client = connect(&etcd.endpoint(), ClientOptions::default()).await;
    let error = client.probe_limits().await.unwrap_err();
    assert!(matches!(error, Error::LimitsTooLow { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("--max-request-bytes 4194304"), "{text}");
}

#[tokio::test]
async fn requests_go_to_the_other_members_when_one_is_gone() {
    let backend = Backend::embedded().await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let unused = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let endpoints = [unused, backend.endpoint()];
    let client = store::Client::connect(&endpoints, ClientOptions::default())
        .await
        .unwrap();
    for number in 0..50 {
        create(&client.unfenced_writer(), &eval(number)).await;
    }
}
