//! Group commits: one revision, conflicts of one member, callers that gave up.

use std::time::Duration;

use model::Evaluation;
use state::{Entity, Write};
use store::Client;
use store_test_kit::TestStore;
use test_kit::builders;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

type Answer = oneshot::Receiver<Result<Commit, Error>>;

fn eval(number: u128) -> Evaluation {
    builders::evaluation(number, &builders::service("web", 1))
}

fn create(number: u128) -> Write {
    let eval = eval(number);
    Write::Create {
        key: Key::Eval(eval.id),
        entity: Entity::Eval(Box::new(eval)),
    }
}

fn member(client: &Client, writes: &[Write]) -> (Member, Answer) {
    let (reply, answer) = oneshot::channel();
    let txn = client.unfenced_writer().txn().with(writes).unwrap();
    let member = Member {
        keys: txn.compared_keys().cloned().collect(),
        txn,
        deadline: Instant::now() + LIMIT,
        reply,
    };
    (member, answer)
}

async fn revision(answer: Answer) -> u64 {
    match answer.await.unwrap().unwrap() {
        Commit::Done { revision } => revision,
        Commit::Conflict(conflict) => panic!("{conflict:?}"),
    }
}

async fn conflict(answer: Answer) -> Conflict {
    match answer.await.unwrap().unwrap() {
        Commit::Done { revision } => panic!("done at {revision}"),
        Commit::Conflict(conflict) => conflict,
    }
}

#[tokio::test]
async fn a_group_is_written_at_one_revision() {
    let store = TestStore::start().await;
    let client = store.client().await;
    let (members, answers): (VecDeque<_>, Vec<_>) = (1..=3)
        .map(|number| member(&client, &[create(number)]))
        .unzip();
    let mut waiting = members;
    let (txn, group) = next_group(&mut waiting).unwrap();
    assert_eq!((group.len(), waiting.len()), (3, 0));
    commit(&client.unfenced_writer(), txn, group).await;
    let mut revisions = Vec::new();
    for answer in answers {
        revisions.push(revision(answer).await);
    }
    revisions.dedup();
    assert_eq!(revisions.len(), 1, "{revisions:?}");
}

#[tokio::test]
async fn a_conflict_concerns_its_own_member() {
    let store = TestStore::start().await;
    let client = store.client().await;
    let writer = client.unfenced_writer();
    let taken = writer.txn().with(&[create(2)]).unwrap();
    writer.commit_surely(&taken, LIMIT).await.unwrap();
    let (members, mut answers): (VecDeque<_>, Vec<_>) = (1..=3)
        .map(|number| member(&client, &[create(number)]))
        .unzip();
    let mut waiting = members;
    let (txn, group) = next_group(&mut waiting).unwrap();
    commit(&writer, txn, group).await;
    let last = answers.pop().unwrap();
    let lost = conflict(answers.pop().unwrap()).await;
    assert_eq!(lost.failed.len(), 1);
    assert_eq!(lost.failed[0].key, Key::Eval(eval(2).id));
    let first = revision(answers.pop().unwrap()).await;
    assert_eq!(revision(last).await, first);
    assert!(first > lost.revision, "written after the conflict");
}

#[tokio::test]
async fn two_requests_about_one_object_are_not_in_one_group() {
    let store = TestStore::start().await;
    let client = store.client().await;
    let (members, answers): (VecDeque<_>, Vec<_>) = [1, 1, 2]
        .map(|number| member(&client, &[create(number)]))
        .into_iter()
        .unzip();
    let mut waiting = members;
    let mut groups = Vec::new();
    while let Some((txn, group)) = next_group(&mut waiting) {
        groups.push(group.len());
        commit(&client.unfenced_writer(), txn, group).await;
    }
    assert_eq!(groups, [1, 2]);
    let mut answers = answers.into_iter();
    revision(answers.next().unwrap()).await;
    conflict(answers.next().unwrap()).await;
    revision(answers.next().unwrap()).await;
}

#[tokio::test]
async fn nothing_is_written_for_a_caller_that_gave_up_before() {
    let store = TestStore::start().await;
    let client = store.client().await;
    let (gone, answer) = member(&client, &[create(1)]);
    drop(answer);
    let (here, answer) = member(&client, &[create(2)]);
    let mut waiting = VecDeque::from([gone, here]);
    let (txn, group) = next_group(&mut waiting).unwrap();
    assert_eq!(group.len(), 1);
    commit(&client.unfenced_writer(), txn, group).await;
    revision(answer).await;
    let absent = client.get(&Key::Eval(eval(1).id)).await.unwrap();
    assert!(absent.is_none(), "{absent:?}");
}

#[tokio::test]
async fn a_group_is_limited() {
    let store = TestStore::start().await;
    let client = store.client().await;
    let large: Vec<_> = (1..=300).map(create).collect();
    let other: Vec<_> = (301..=600).map(create).collect();
    let (mut waiting, _answers): (VecDeque<_>, Vec<_>) = [large, other]
        .map(|writes| member(&client, &writes))
        .into_iter()
        .unzip();
    let (_, group) = next_group(&mut waiting).unwrap();
    assert_eq!((group.len(), waiting.len()), (1, 1));
}

#[tokio::test]
async fn concurrent_requests_need_fewer_transactions() {
    let store = TestStore::start().await;
    let client = store.client().await;
    let stop = CancellationToken::new();
    let (writer, metrics) = (client.unfenced_writer(), Metrics::default());
    let mut loops = JoinSet::new();
    let groups = GroupCommit::start(writer, metrics, stop.clone(), &mut loops);
    let deadline = Instant::now() + LIMIT;
    let mut requests = JoinSet::new();
    for number in 1..=100 {
        let (groups, writer) = (groups.clone(), client.unfenced_writer());
        requests.spawn(async move {
            let txn = writer.txn().with(&[create(number)]).unwrap();
            groups
                .commit(txn, deadline)
                .await
                .unwrap()
                .revision()
                .unwrap()
        });
    }
    let mut revisions = requests.join_all().await;
    assert_eq!(revisions.len(), 100);
    revisions.sort_unstable();
    revisions.dedup();
    assert!(revisions.len() < 100, "{revisions:?}");
    stop.cancel();
}

/// A gateway serves no registrations without it, so the service has to learn of its end.
#[tokio::test]
async fn the_end_of_the_loop_is_seen_among_the_loops_of_the_service() {
    let store = TestStore::start().await;
    let client = store.client().await;
    let stop = CancellationToken::new();
    let (writer, metrics) = (client.unfenced_writer(), Metrics::default());
    let mut loops = JoinSet::new();
    let groups = GroupCommit::start(writer, metrics, stop.clone(), &mut loops);
    assert!(loops.try_join_next().is_none(), "it runs");
    stop.cancel();
    loops.join_next().await.unwrap().unwrap();
    let txn = client.unfenced_writer().txn().with(&[create(1)]).unwrap();
    let refused = groups.commit(txn, Instant::now() + LIMIT).await;
    assert!(refused.is_err(), "{refused:?}");
}
