//! Drains over a store: through a change of leaders, and only as far as requested.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{
    AllocClient, AllocId, Allocation, ClientStatus, DeploymentHealth, DesiredStatus, DrainStatus,
    DrainStrategy, EvalStatus, Job, JobType, NodeStatus, Timestamp, TriggeredBy,
};
use state::{Key, Snapshot};
use test_kit::builders::{allocation, batch, service};
use test_kit::writes;

use crate::suite::{Suite, id};

fn alloc_id(number: u128) -> AllocId {
    AllocId::from_random(number)
}

fn healthy() -> AllocClient {
    AllocClient {
        status: ClientStatus::Running,
        health: Some(DeploymentHealth {
            healthy: true,
            time: Timestamp(1),
            deployment_id: None,
        }),
        ..AllocClient::default()
    }
}

/// Stores a job with running, healthy allocations `first..` on node 1; returns its create index.
async fn run(suite: &Suite, job: &Job, first: u128, count: u128) -> u64 {
    let job_create_index = suite
        .commit(|txn| {
            txn.add(&writes::create(&Key::Job(job.key()), job)).unwrap();
            txn.add(&writes::create(&Key::JobVersion(job.key(), 0), job))
                .unwrap();
        })
        .await;
    suite
        .commit(|txn| {
            for number in first..first + count {
                let alloc = Allocation {
                    job_create_index,
                    name_index: u32::try_from(number - first).unwrap(),
                    ..allocation(number, job, id(1))
                };
                txn.add(&writes::create(&Key::Alloc(alloc.id), &alloc))
                    .unwrap();
                txn.add(&writes::create(&Key::AllocClient(alloc.id), &healthy()))
                    .unwrap();
            }
        })
        .await;
    job_create_index
}

async fn drain(suite: &Suite, number: u128, deadline: Option<Duration>) {
    let snapshot = suite.now().await;
    let stored = snapshot.node(id(number)).unwrap();
    let mut node = stored.value.clone();
    let now = Timestamp(service_kit::Clock::real().now());
    node.begin_drain(
        DrainStrategy::new(deadline, false, now),
        BTreeMap::new(),
        now,
    );
    suite
        .commit(|txn| {
            txn.add(&writes::update(
                &Key::Node(node.id),
                stored.modify_index,
                &node,
            ))
            .unwrap();
        })
        .await;
}

fn marked(snapshot: &Snapshot) -> Vec<AllocId> {
    let marked = snapshot
        .allocs()
        .filter(|view| view.alloc.transition.migrate);
    let mut ids: Vec<AllocId> = marked.map(|view| view.alloc.id).collect();
    ids.sort_unstable();
    ids
}

/// Stops marked allocations, as the scheduler and the node would; replacements run on node 2.
async fn move_away(suite: &Suite, old: AllocId, new: u128) {
    let snapshot = suite.now().await;
    let view = snapshot.alloc(old).unwrap();
    let stopped = Allocation {
        desired_status: DesiredStatus::Stop,
        ..Allocation::clone(&view.alloc)
    };
    let replacement = Allocation {
        id: alloc_id(new),
        node_id: id(2),
        transition: model::DesiredTransition::default(),
        ..Allocation::clone(&view.alloc)
    };
    let ended = AllocClient {
        status: ClientStatus::Complete,
        ..AllocClient::default()
    };
    suite
        .commit(|txn| {
            txn.add(&writes::update(
                &Key::Alloc(old),
                view.alloc_modify_index,
                &stopped,
            ))
            .unwrap();
            txn.add(&writes::update(
                &Key::AllocClient(old),
                view.client_modify_index,
                &ended,
            ))
            .unwrap();
            txn.add(&writes::create(&Key::Alloc(replacement.id), &replacement))
                .unwrap();
            txn.add(&writes::create(
                &Key::AllocClient(replacement.id),
                &healthy(),
            ))
            .unwrap();
        })
        .await;
}

#[tokio::test]
async fn a_node_is_emptied_one_by_one_and_another_leader_goes_on() {
    let suite = Suite::start().await;
    for number in [1, 2] {
        suite.register(number, NodeStatus::Ready).await;
    }
    let web = service("web", 2);
    run(&suite, &web, 10, 2).await;
    let first = suite.controller().await;
    drain(&suite, 1, Some(Duration::from_secs(3_600))).await;
    let one = suite
        .wait("a mark", |snapshot| marked(snapshot).first().copied())
        .await;
    let snapshot = suite.now().await;
    let view = snapshot.alloc(one).unwrap();
    let evals: Vec<_> = snapshot.evals_by_job(&web.key()).collect();
    assert_eq!(evals.len(), 1);
    let eval = &evals[0];
    assert_eq!(
        eval.create_index, view.alloc_modify_index,
        "one transaction"
    );
    assert_eq!(eval.value.triggered_by, TriggeredBy::NodeDrain);
    assert_eq!(
        (eval.value.status, eval.value.node_id),
        (EvalStatus::Pending, Some(id(1)))
    );

    // One migrates, so another leader marks none either.
    first.drain.cancel();
    let second = suite.controller().await;
    let gateway = suite.gateway(&second.address).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(marked(&suite.now().await), [one]);
    move_away(&suite, one, 20).await;
    let other = suite
        .wait("the next mark", |snapshot| {
            marked(snapshot).into_iter().find(|id| *id != one)
        })
        .await;
    move_away(&suite, other, 21).await;
    let node = suite
        .wait("the end of the drain", |snapshot| {
            let node = snapshot.node(id(1))?;
            node.value.drain.is_none().then(|| node.value.clone())
        })
        .await;
    let last = node.last_drain.unwrap();
    assert_eq!(last.status, DrainStatus::Complete);
    assert!(!node.events.is_empty() && last.updated_at >= last.started_at);
    let snapshot = suite.now().await;
    assert_eq!(marked(&snapshot).len(), 2, "none on the other node");
    assert_eq!(snapshot.evals_by_job(&web.key()).count(), 2);
    drop(gateway);
}

#[tokio::test]
async fn at_the_deadline_all_leave_in_bounded_pieces_with_an_evaluation_each() {
    let suite = Suite::start().await;
    suite.register(1, NodeStatus::Ready).await;
    let sum = batch("sum", 250);
    run(&suite, &sum, 1_000, 250).await;
    let log = Job {
        job_type: JobType::System,
        ..batch("log", 1)
    };
    run(&suite, &log, 2_000, 1).await;
    let _controller = suite.controller().await;
    drain(&suite, 1, Some(Duration::from_millis(1_500))).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(marked(&suite.now().await).len(), 0, "it has time");
    suite
        .wait("all to be marked", |snapshot| {
            (marked(snapshot).len() == 251).then_some(())
        })
        .await;
    let snapshot = suite.now().await;
    let evals: Vec<_> = snapshot.evals_by_job(&sum.key()).collect();
    assert_eq!(evals.len(), 3);
    for eval in evals {
        let key = sum.key();
        let with = snapshot
            .allocs_by_job(&key)
            .filter(|view| view.alloc_modify_index == eval.create_index);
        let with: Vec<_> = with.collect();
        assert!((1..=100).contains(&with.len()), "{}", with.len());
        let is_final = |view: &&&state::AllocView| view.alloc.transition.migrate_disable_placement;
        assert_eq!(with.iter().filter(is_final).count(), with.len());
    }
    assert!(
        snapshot.node(id(1)).unwrap().value.drain.is_some(),
        "they still run"
    );
}

#[tokio::test]
async fn an_idle_node_is_drained_at_once_and_a_cancelled_drain_marks_no_allocation() {
    let suite = Suite::start().await;
    for number in [1, 3] {
        suite.register(number, NodeStatus::Ready).await;
    }
    let web = service("web", 3);
    run(&suite, &web, 10, 3).await;
    drain(&suite, 1, Some(Duration::from_secs(3_600))).await;
    let snapshot = suite.now().await;
    let stored = snapshot.node(id(1)).unwrap();
    let mut node = stored.value.clone();
    node.end_drain(DrainStatus::Canceled, Timestamp(1));
    suite
        .commit(|txn| {
            txn.add(&writes::update(
                &Key::Node(node.id),
                stored.modify_index,
                &node,
            ))
            .unwrap();
        })
        .await;
    drain(&suite, 3, None).await;
    let _controller = suite.controller().await;
    suite
        .wait("the idle node", |snapshot| {
            snapshot.node(id(3))?.value.drain.is_none().then_some(())
        })
        .await;
    let snapshot = suite.now().await;
    assert_eq!(marked(&snapshot), []);
    let node = &snapshot.node(id(1)).unwrap().value;
    assert_eq!(
        node.last_drain.as_ref().unwrap().status,
        DrainStatus::Canceled
    );
}
