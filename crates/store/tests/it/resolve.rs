//! Outcomes of commits without an answer.

use store::{Client, ClientOptions, Commit, Resolution, Txn, Writer};
use test_kit::proxy::{Mode, Proxy};
use test_kit::writes;

use crate::support::{
    Backend, SHORT, WAIT_LIMIT, complete, connect, create, done, eval, impatient, key, on_both,
    update,
};

on_both!(
    a_commit_that_was_carried_out_is_found,
    a_commit_that_never_arrived_is_not_found,
    a_commit_is_found_below_later_changes,
    an_equal_change_by_another_writer_is_not_taken_for_the_commit,
    a_deletion_is_found,
    deletions_by_another_writer_are_not_taken_for_the_commit,
    a_compacted_outcome_is_forgotten,
    a_commit_in_doubt_is_carried_out_once,
    a_commit_in_doubt_is_given_up_at_the_timeout,
    a_conflict_after_a_lost_answer_is_resolved,
);

/// A writer through a proxy, and one around it.
struct Two {
    proxy: Proxy,
    writer: Writer,
    other: Writer,
    client: Client,
}

impl Two {
    async fn start(backend: &Backend) -> Self {
        let proxy = backend.proxy().await;
        let writer = impatient(&proxy).await.unfenced_writer();
        let client = backend.client().await;
        // The connection is established before the fault.
        create(&writer, &eval(1_000)).await;
        Self {
            proxy,
            writer,
            other: client.unfenced_writer(),
            client,
        }
    }

    /// Commits and loses the answer; returns once the store has carried it out.
    async fn commit_unanswered(&self, txn: &Txn) -> u64 {
        let before = self.client.current_revision().await.unwrap();
        self.proxy.set(Mode::HoldAnswers);
        assert!(self.writer.commit(txn).await.unwrap_err().is_unknown());
        let after = test_kit::wait_for("the commit", WAIT_LIMIT, async || {
            let revision = self.client.current_revision().await.unwrap();
            (revision > before).then_some(revision)
        });
        after.await
    }

    /// Ends the fault after it has cost one request its answer. The sleep is the length of the fault;
    /// the test does not wait for it.
    async fn heal_later(&self) {
        tokio::time::sleep(SHORT * 2).await;
        self.proxy.set(Mode::Open);
    }

    async fn resolve(&self, txn: &Txn) -> Resolution {
        self.other.resolve(txn).await.unwrap()
    }
}

async fn a_commit_that_was_carried_out_is_found(backend: Backend) {
    let two = Two::start(&backend).await;
    let mut txn = two.writer.txn();
    // More than one confirming read holds; less than the flow control window of HTTP/2.
    for number in 0..105 {
        txn.add(&writes::create(&key(&eval(number)), &eval(number)))
            .unwrap();
    }
    let revision = two.commit_unanswered(&txn).await;
    assert_eq!(two.resolve(&txn).await, Resolution::Applied { revision });
}

async fn a_commit_that_never_arrived_is_not_found(backend: Backend) {
    let two = Two::start(&backend).await;
    let there = create(&two.other, &eval(1)).await;
    let mut txn = two.writer.txn();
    txn.add(&writes::update(&key(&eval(1)), there, &complete(eval(1))))
        .unwrap();
    two.proxy.set(Mode::Hold);
    assert!(two.writer.commit(&txn).await.unwrap_err().is_unknown());
    assert_eq!(two.resolve(&txn).await, Resolution::NotApplied);
    let mut new = two.writer.txn();
    new.add(&writes::create(&key(&eval(2)), &eval(2))).unwrap();
    assert_eq!(two.resolve(&new).await, Resolution::NotApplied);
    assert_eq!(two.resolve(&two.writer.txn()).await, Resolution::NotApplied);
}

async fn a_commit_is_found_below_later_changes(backend: Backend) {
    let two = Two::start(&backend).await;
    let there = create(&two.other, &eval(1)).await;
    let mut txn = two.writer.txn();
    txn.add(&writes::update(&key(&eval(1)), there, &complete(eval(1))))
        .unwrap();
    let revision = two.commit_unanswered(&txn).await;
    let mut last = revision;
    for round in 0..5 {
        let mut changed = eval(1);
        changed.snapshot_index = round;
        last = update(&two.other, last, &changed).await;
    }
    assert_eq!(two.resolve(&txn).await, Resolution::Applied { revision });
}

async fn an_equal_change_by_another_writer_is_not_taken_for_the_commit(backend: Backend) {
    let two = Two::start(&backend).await;
    let there = create(&two.other, &eval(1)).await;
    // Another writer makes the same change to one key, and not to the other.
    update(&two.other, there, &complete(eval(1))).await;
    let mut txn = two.writer.txn();
    txn.add(&writes::update(&key(&eval(1)), there, &complete(eval(1))))
        .unwrap();
    txn.add(&writes::create(&key(&eval(2)), &eval(2))).unwrap();
    assert_eq!(two.resolve(&txn).await, Resolution::NotApplied);
    let mut also_there = two.writer.txn();
    also_there
        .add(&writes::update(&key(&eval(1)), there, &complete(eval(1))))
        .unwrap();
    also_there
        .add(&writes::update(
            &key(&eval(1_000)),
            there - 1,
            &complete(eval(1_000)),
        ))
        .unwrap();
    assert_eq!(two.resolve(&also_there).await, Resolution::NotApplied);
}

async fn a_deletion_is_found(backend: Backend) {
    let two = Two::start(&backend).await;
    let there = create(&two.other, &eval(1)).await;
    let mut txn = two.writer.txn();
    txn.add(&writes::delete(&key(&eval(1)), there)).unwrap();
    assert_eq!(two.resolve(&txn).await, Resolution::NotApplied);
    let revision = two.commit_unanswered(&txn).await;
    assert_eq!(two.resolve(&txn).await, Resolution::Applied { revision });
    create(&two.other, &eval(1)).await;
    assert_eq!(
        two.resolve(&txn).await,
        Resolution::Forgotten,
        "the author of a deletion is unknown"
    );
}

async fn deletions_by_another_writer_are_not_taken_for_the_commit(backend: Backend) {
    let two = Two::start(&backend).await;
    let mut created = Vec::new();
    // More than one read holds.
    for number in 0..105 {
        created.push(create(&two.other, &eval(number)).await);
    }
    let mut txn = two.writer.txn();
    for (number, index) in created.iter().enumerate() {
        let number = u128::try_from(number).unwrap();
        txn.add(&writes::delete(&key(&eval(number)), *index))
            .unwrap();
    }
    // Another writer deletes the first of them only.
    let mut theirs = two.other.txn();
    theirs
        .add(&writes::delete(&key(&eval(0)), created[0]))
        .unwrap();
    done(two.other.commit(&theirs).await.unwrap());
    assert_eq!(two.resolve(&txn).await, Resolution::NotApplied);
    // Only the last one shows the outcome.
    for number in 1..104 {
        let mut theirs = two.other.txn();
        let index = created[usize::try_from(number).unwrap()];
        theirs
            .add(&writes::delete(&key(&eval(number)), index))
            .unwrap();
        done(two.other.commit(&theirs).await.unwrap());
    }
    assert_eq!(two.resolve(&txn).await, Resolution::NotApplied);
    update(&two.other, created[104], &complete(eval(104))).await;
    assert_eq!(
        two.resolve(&txn).await,
        Resolution::Forgotten,
        "it may have been deleted and created anew"
    );
}

async fn a_compacted_outcome_is_forgotten(backend: Backend) {
    let two = Two::start(&backend).await;
    let there = create(&two.other, &eval(1)).await;
    let mut txn = two.writer.txn();
    txn.add(&writes::update(&key(&eval(1)), there, &complete(eval(1))))
        .unwrap();
    let revision = two.commit_unanswered(&txn).await;
    update(&two.other, revision, &eval(1)).await;
    backend.compact().await;
    assert_eq!(two.resolve(&txn).await, Resolution::Forgotten);
}

async fn a_commit_in_doubt_is_carried_out_once(backend: Backend) {
    let two = Two::start(&backend).await;
    let mut txn = two.writer.txn();
    txn.add(&writes::create(&key(&eval(1)), &eval(1))).unwrap();
    for mode in [Mode::HoldAnswers, Mode::Hold, Mode::Cut] {
        let revision_before = two.client.current_revision().await.unwrap();
        two.proxy.set(mode);
        let healing = two.heal_later();
        let (commit, ()) = tokio::join!(two.writer.commit_surely(&txn, WAIT_LIMIT), healing);
        let revision = done(commit.unwrap());
        assert_eq!(
            revision,
            revision_before + 1,
            "{mode:?}: one revision, whatever happened"
        );
        let mut next = two.writer.txn();
        next.add(&writes::update(
            &key(&eval(1)),
            revision,
            &complete(eval(1)),
        ))
        .unwrap();
        let last = done(two.other.commit(&next).await.unwrap());
        // An update this time.
        txn = two.writer.txn();
        let mut changed = eval(1);
        changed.snapshot_index = last;
        txn.add(&writes::update(&key(&eval(1)), last, &changed))
            .unwrap();
    }
}

async fn a_commit_in_doubt_is_given_up_at_the_timeout(backend: Backend) {
    let two = Two::start(&backend).await;
    // The timeout of one request is longer than the whole.
    let options = ClientOptions {
        request_timeout: WAIT_LIMIT,
        ..ClientOptions::default()
    };
    let writer = connect(&two.proxy.endpoint(), options)
        .await
        .unfenced_writer();
    for (number, mode) in [Mode::HoldAnswers, Mode::Hold, Mode::Cut]
        .into_iter()
        .enumerate()
    {
        let eval = eval(number as u128 + 1);
        let mut txn = writer.txn();
        txn.add(&writes::create(&key(&eval), &eval)).unwrap();
        two.proxy.set(mode);
        let began = tokio::time::Instant::now();
        writer.commit_surely(&txn, SHORT).await.unwrap_err();
        let waited = began.elapsed();
        assert!(waited < WAIT_LIMIT / 4, "{mode:?}: {waited:?}");
        two.proxy.set(Mode::Open);
    }
}

async fn a_conflict_after_a_lost_answer_is_resolved(backend: Backend) {
    let two = Two::start(&backend).await;
    let there = create(&two.other, &eval(1)).await;
    update(&two.other, there, &complete(eval(1))).await;
    let mut late = two.writer.txn();
    late.add(&writes::update(&key(&eval(1)), there, &eval(1)))
        .unwrap();
    two.proxy.set(Mode::HoldAnswers);
    let healing = two.heal_later();
    let (commit, ()) = tokio::join!(two.writer.commit_surely(&late, WAIT_LIMIT), healing);
    assert!(
        matches!(commit.unwrap(), Commit::Conflict(_)),
        "it never could be carried out"
    );
}
