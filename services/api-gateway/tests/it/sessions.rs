//! Nodes' sessions: registration, heartbeats, the stream of assignments.

use std::time::Duration;

use model::{DesiredStatus, Node, NodeStatus};
use proto::internal::v1::{
    AllocationsUpdate, HeartbeatRequest, RegisterNodeRequest, RegisterNodeResponse,
    WatchAllocationsRequest,
};
use state::{Entity, Key};
use test_kit::proxy::Mode;
use test_kit::wait_for;
use test_kit::writes;
use tonic::{Code, Status, Streaming};

use crate::support::{Suite, WAIT_LIMIT, alloc, ask, job, node};

pub(crate) async fn register(
    suite: &Suite,
    gateway: usize,
    node: &Node,
) -> Result<RegisterNodeResponse, Status> {
    let request = RegisterNodeRequest {
        node: Some(node.into()),
        secret: node.secret.clone(),
    };
    Ok(suite
        .sessions(gateway)
        .register(ask(request))
        .await?
        .into_inner())
}

pub(crate) async fn watch(
    suite: &Suite,
    gateway: usize,
    node: &Node,
    seen_revision: u64,
) -> Result<Streaming<AllocationsUpdate>, Status> {
    let request = WatchAllocationsRequest {
        node_id: node.id.to_string(),
        secret: node.secret.clone(),
        seen_revision,
    };
    Ok(suite
        .sessions(gateway)
        .watch_allocations(ask(request))
        .await?
        .into_inner())
}

pub(crate) async fn next(updates: &mut Streaming<AllocationsUpdate>) -> AllocationsUpdate {
    tokio::time::timeout(WAIT_LIMIT, updates.message())
        .await
        .unwrap()
        .unwrap()
        .unwrap()
}

async fn stored(suite: &Suite, node: &Node) -> (Node, u64) {
    let stored = suite.get(&Key::Node(node.id)).await.unwrap();
    let Entity::Node(found) = stored.entity else {
        panic!("{stored:?}")
    };
    (*found, stored.mod_revision)
}

fn heartbeat(node: &Node) -> HeartbeatRequest {
    HeartbeatRequest {
        node_id: node.id.to_string(),
        secret: node.secret.clone(),
    }
}

#[tokio::test]
async fn a_node_registers_once_and_the_same_record_is_not_written_again() {
    let (suite, node) = (Suite::start(2).await, node(1));
    let first = register(&suite, 0, &node).await.unwrap();
    assert_eq!(first.status, "initializing");
    assert_eq!(first.gateways, [suite.address(0)]);
    assert_eq!(
        first.heartbeat_ttl,
        Some(proto::duration_to_wire(Duration::from_secs(10)))
    );
    let (found, revision) = stored(&suite, &node).await;
    assert_eq!(revision, first.node_modify_index);
    assert_eq!(found.status, NodeStatus::Initializing);
    assert!(found.computed_class.starts_with("v1:"));
    // Through the other gateway, which may not have seen it yet.
    let second = register(&suite, 1, &node).await.unwrap();
    assert_eq!(second.node_modify_index, first.node_modify_index);
    assert_eq!(stored(&suite, &node).await.1, first.node_modify_index);
}

#[tokio::test]
async fn a_changed_record_keeps_what_the_servers_have_set_and_has_jobs_looked_at() {
    let (suite, mut node, job) = (Suite::start(1).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    suite
        .put_alloc(&alloc(1, &job, &node, registered.index))
        .await;
    let (ready, _) = stored(&suite, &node).await;
    suite
        .put_node(&Node {
            status: NodeStatus::Ready,
            ..ready
        })
        .await;
    node.attributes
        .insert("cpu.arch".to_owned(), "arm64".to_owned());
    let answer = register(&suite, 0, &node).await.unwrap();
    assert_eq!(answer.status, "ready");
    let (found, revision) = stored(&suite, &node).await;
    assert_eq!(
        (found.status, revision),
        (NodeStatus::Ready, answer.node_modify_index)
    );

    let list = proto::v1::ListEvaluationsRequest::default();
    let evals = suite
        .evaluations(0)
        .list(ask(list))
        .await
        .unwrap()
        .into_inner()
        .evaluations;
    let made = evals
        .iter()
        .find(|eval| eval.triggered_by == "node-update")
        .unwrap();
    assert_eq!(
        made.create_index, answer.node_modify_index,
        "in the same transaction"
    );
    assert_eq!(
        (made.job_id.as_str(), made.node_id.as_str()),
        ("web", &*node.id.to_string())
    );
}

#[tokio::test]
async fn another_secret_opens_nothing() {
    let (suite, node) = (Suite::start(1).await, node(1));
    register(&suite, 0, &node).await.unwrap();
    let thief = Node {
        secret: "guessed".to_owned(),
        ..node.clone()
    };
    let refusals = [
        register(&suite, 0, &thief).await.unwrap_err(),
        suite
            .sessions(0)
            .heartbeat(ask(heartbeat(&thief)))
            .await
            .unwrap_err(),
        watch(&suite, 0, &thief, 0).await.unwrap_err(),
    ];
    for status in refusals {
        assert_eq!(status.code(), Code::PermissionDenied, "{status}");
        assert!(
            !status.message().contains(&node.secret),
            "{}",
            status.message()
        );
    }
}

#[tokio::test]
async fn a_changed_node_with_too_many_jobs_for_one_transaction_says_so_in_its_record() {
    const JOBS: u128 = 1_900;
    let (suite, mut node) = (Suite::start(1).await, node(1));
    register(&suite, 0, &node).await.unwrap();
    let writer = suite.store.unfenced_writer();
    let numbers: Vec<u128> = (1..=JOBS).collect();
    for chunk in numbers.chunks(400) {
        let mut txn = writer.txn();
        for number in chunk {
            let job = job(&format!("web-{number}"));
            let placed = alloc(*number, &job, &node, 1);
            txn.add(&writes::create(&Key::Job(job.key()), &job))
                .unwrap();
            txn.add(&writes::create(&Key::Alloc(placed.id), &placed))
                .unwrap();
        }
        let commit = writer.commit_surely(&txn, WAIT_LIMIT).await.unwrap();
        commit.revision().unwrap();
    }
    // Linearizable, so the gateway has seen all of it.
    let list = || proto::v1::ListEvaluationsRequest::default();
    suite.evaluations(0).list(ask(list())).await.unwrap();
    node.attributes
        .insert("cpu.arch".to_owned(), "arm64".to_owned());
    register(&suite, 0, &node).await.unwrap();
    let evals = suite
        .evaluations(0)
        .list(ask(list()))
        .await
        .unwrap()
        .into_inner()
        .evaluations;
    let jobs: std::collections::HashSet<_> = evals.iter().map(|eval| &eval.job_id).collect();
    assert_eq!((evals.len(), jobs.len()), (900, 900));
    // The cluster-controller creates the others.
    let stored = suite.store.get(&Key::Node(node.id)).await.unwrap().unwrap();
    assert!(matches!(stored.entity, Entity::Node(node) if node.lacks_evals));
}

#[tokio::test]
async fn a_heartbeat_tells_the_node_how_it_stands_and_writes_nothing() {
    let (suite, node) = (Suite::start(2).await, node(1));
    register(&suite, 0, &node).await.unwrap();
    let before = suite.store.current_revision().await.unwrap();
    for gateway in [0, 1] {
        let answer = suite
            .sessions(gateway)
            .heartbeat(ask(heartbeat(&node)))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(
            (answer.status.as_str(), answer.eligibility.as_str()),
            ("initializing", "eligible")
        );
    }
    assert_eq!(suite.store.current_revision().await.unwrap(), before);
    let status = suite
        .sessions(0)
        .heartbeat(ask(heartbeat(&crate::support::node(2))))
        .await;
    assert_eq!(
        status.unwrap_err().code(),
        Code::NotFound,
        "so the node registers again"
    );
}

#[tokio::test]
async fn a_node_is_sent_all_it_has_and_then_every_change() {
    let (suite, node, job) = (Suite::start(1).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    let mut first = alloc(1, &job, &node, registered.index);
    first.eval_id = registered.eval_id.parse().unwrap();
    let placed_at = suite.put_alloc(&first).await;
    let mut updates = watch(&suite, 0, &node, placed_at).await.unwrap();
    let update = next(&mut updates).await;
    assert!(update.full && update.revision >= placed_at, "{update:?}");
    assert_eq!((update.assignments.len(), update.jobs.len()), (1, 1));
    assert_eq!(update.jobs[0].id.as_deref(), Some("web"));

    // Changes of another node's allocations are not sent here; the next update is ours.
    suite
        .put_alloc(&alloc(9, &job, &crate::support::node(2), registered.index))
        .await;
    let second = alloc(2, &job, &node, registered.index);
    let revision = suite.put_alloc(&second).await;
    let update = next(&mut updates).await;
    assert_eq!((update.full, update.revision), (false, revision));
    assert_eq!(
        update.assignments[0].allocation.as_ref().unwrap().id,
        second.id.to_string()
    );
    assert_eq!(update.jobs.len(), 0, "the stream has sent this version");

    first.desired_status = DesiredStatus::Stop;
    let revision = suite.put_alloc(&first).await;
    let update = next(&mut updates).await;
    assert_eq!(update.revision, revision);
    assert_eq!(
        update.assignments[0]
            .allocation
            .as_ref()
            .unwrap()
            .desired_status,
        "stop"
    );

    let revision = suite.delete(&Key::Alloc(first.id)).await;
    let update = next(&mut updates).await;
    assert_eq!(update.revision, revision);
    assert_eq!(update.removed_alloc_ids, [first.id.to_string()]);
}

#[tokio::test]
async fn a_node_that_does_not_read_is_sent_everything_afresh_and_nothing_piles_up() {
    // More than a session remembers, changed several times over.
    const ALLOCS: u128 = 5_000;
    const ROUNDS: usize = 4;
    const CHUNK: usize = 500;
    let (suite, node, job) = (Suite::start(1).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    let mut updates = watch(&suite, 0, &node, 0).await.unwrap();
    assert!(next(&mut updates).await.full);
    let numbers: Vec<u128> = (1..=ALLOCS).collect();
    let mut written_at = vec![0; numbers.len().div_ceil(CHUNK)];
    let writer = suite.store.unfenced_writer();
    for round in 0..ROUNDS {
        for (chunk, at) in numbers.chunks(CHUNK).zip(&mut written_at) {
            let mut txn = writer.txn();
            for number in chunk {
                let mut placed = alloc(*number, &job, &node, registered.index);
                placed.desired_description = format!("round {round}");
                let key = Key::Alloc(placed.id);
                match *at {
                    0 => txn.add(&writes::create(&key, &placed)).unwrap(),
                    at => txn.add(&writes::update(&key, at, &placed)).unwrap(),
                };
            }
            let commit = writer.commit_surely(&txn, WAIT_LIMIT).await.unwrap();
            *at = commit.revision().unwrap();
        }
    }
    let last = *written_at.last().unwrap();
    // Read now: however many changes there were, what comes is the newest state and soon over.
    let mut seen = std::collections::HashMap::new();
    let mut messages = 0;
    let mut previous = 0;
    while previous < last {
        let update = next(&mut updates).await;
        assert!(update.revision > previous, "revisions only go forward");
        previous = update.revision;
        messages += 1;
        for assignment in update.assignments {
            let allocation = assignment.allocation.unwrap();
            seen.insert(allocation.id, allocation.desired_description);
        }
    }
    assert_eq!(seen.len() as u128, ALLOCS);
    assert!(
        seen.values()
            .all(|round| *round == format!("round {}", ROUNDS - 1))
    );
    let commits = ROUNDS * written_at.len();
    assert!(
        messages < commits,
        "{messages} messages for {commits} commits"
    );
}

#[tokio::test]
async fn a_node_that_is_ahead_of_the_store_itself_is_sent_everything_under_another_name() {
    let (suite, node, job) = (Suite::start(2).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    let placed = alloc(1, &job, &node, registered.index);
    let placed_at = suite.put_alloc(&placed).await;
    let first = async |gateway: usize, seen: u64| {
        // From here on it knows what has been written so far.
        let request = proto::v1::GetJobRequest {
            job_id: "web".to_owned(),
            ..Default::default()
        };
        suite.jobs(gateway).get(ask(request)).await.unwrap();
        let mut updates = watch(&suite, gateway, &node, seen).await.unwrap();
        let update = next(&mut updates).await;
        assert!(update.full && update.revision >= placed_at, "{update:?}");
        assert_eq!(update.assignments.len(), 1);
        let second = alloc(2, &job, &node, registered.index);
        suite.put_alloc(&second).await;
        assert_eq!(next(&mut updates).await.store_id, update.store_id);
        suite.delete(&Key::Alloc(second.id)).await;
        update.store_id
    };
    let usual = first(0, placed_at).await;
    assert!(!matches!(usual.as_str(), "" | "0"), "{usual:?}");
    // As after a restore from a backup: no store was ever at this revision.
    let began = tokio::time::Instant::now();
    let restored = first(0, 1_000_000).await;
    let waited = began.elapsed();
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    assert_ne!(
        restored, usual,
        "a node that compares revisions would wait for ever"
    );
    assert_ne!(first(1, 1_000_000).await, restored);
    // Every gateway calls the store the same.
    assert_eq!(first(1, placed_at).await, usual);
}

#[tokio::test]
async fn without_an_answer_of_the_store_a_gateway_never_serves_an_older_revision() {
    let (suite, node) = (Suite::start(1).await, node(1));
    register(&suite, 0, &node).await.unwrap();
    suite.proxy.set(Mode::Hold);
    let began = tokio::time::Instant::now();
    let status = watch(&suite, 0, &node, 1_000_000).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    let waited = began.elapsed();
    assert!(waited < Duration::from_secs(6), "{waited:?}");
}

#[tokio::test]
async fn a_node_that_has_seen_what_is_still_to_come_waits_for_it() {
    let (suite, node, job) = (Suite::start(1).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    let next_revision = suite.store.current_revision().await.unwrap() + 1;
    let watching = watch(&suite, 0, &node, next_revision);
    let placing = suite_put_later(&suite, &job, &node, registered.index);
    let (updates, placed_at) = tokio::join!(watching, placing);
    assert_eq!(placed_at, next_revision);
    let update = next(&mut updates.unwrap()).await;
    assert_eq!(
        (update.assignments.len(), update.revision >= placed_at),
        (1, true)
    );
}

async fn suite_put_later(suite: &Suite, job: &model::Job, node: &Node, index: u64) -> u64 {
    // The watch is under way by the time this is polled the second time.
    tokio::task::yield_now().await;
    suite.put_alloc(&alloc(1, job, node, index)).await
}

#[tokio::test]
async fn a_second_stream_ends_the_first_and_a_drain_ends_both() {
    let (suite, node) = (Suite::start(1).await, node(1));
    register(&suite, 0, &node).await.unwrap();
    let mut first = watch(&suite, 0, &node, 0).await.unwrap();
    next(&mut first).await;
    let mut second = watch(&suite, 0, &node, 0).await.unwrap();
    next(&mut second).await;
    let status = first.message().await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted, "{status}");
    suite.gateways[0].drain.cancel();
    let status = second.message().await.unwrap_err();
    assert_eq!(
        status.code(),
        Code::Unavailable,
        "so the node asks another: {status}"
    );
}

#[tokio::test]
async fn a_stream_that_its_node_drops_is_forgotten() {
    let (suite, node) = (Suite::start(1).await, node(1));
    register(&suite, 0, &node).await.unwrap();
    let mut updates = watch(&suite, 0, &node, 0).await.unwrap();
    next(&mut updates).await;
    let sessions = |count: u32| format!("kafila_api_gateway_node_sessions {count}\n");
    assert!(suite.metrics(0).await.contains(&sessions(1)));
    drop(updates);
    wait_for("the session to close", WAIT_LIMIT, async || {
        suite.metrics(0).await.contains(&sessions(0)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_thousand_streams_cost_one_reader_of_every_change() {
    const NODES: u128 = 1_000;
    let (suite, job) = (Suite::start(1).await, job("web"));
    let nodes: Vec<Node> = (1..=NODES).map(node).collect();
    let writer = suite.store.unfenced_writer();
    for chunk in nodes.chunks(500) {
        let mut txn = writer.txn();
        for node in chunk {
            txn.add(&writes::create(&Key::Node(node.id), node)).unwrap();
        }
        writer
            .commit_surely(&txn, WAIT_LIMIT)
            .await
            .unwrap()
            .revision()
            .unwrap();
    }
    let registered = suite.register(&job).await;
    let mut streams = Vec::new();
    for node in &nodes {
        let mut updates = watch(&suite, 0, node, registered.index).await.unwrap();
        assert!(next(&mut updates).await.full);
        streams.push(updates);
    }
    // Ten allocations on each node, spread over few transactions.
    let started = tokio::time::Instant::now();
    let mut last = 0;
    for round in 0..10 {
        for chunk in nodes.chunks(500) {
            let mut txn = writer.txn();
            for (position, node) in chunk.iter().enumerate() {
                let number = 1
                    + round * NODES
                    + position as u128
                    + (u128::from(chunk[0].id == nodes[0].id)) * 500;
                let placed = alloc(1_000_000 + number, &job, node, registered.index);
                txn.add(&writes::create(&Key::Alloc(placed.id), &placed))
                    .unwrap();
            }
            last = writer
                .commit_surely(&txn, WAIT_LIMIT)
                .await
                .unwrap()
                .revision()
                .unwrap();
        }
    }
    let mut sent = 0;
    for (position, updates) in streams.iter_mut().enumerate() {
        let mut seen = 0;
        while seen < 10 {
            seen += next(updates).await.assignments.len();
        }
        sent += seen;
        assert_eq!(seen, 10, "node {position}");
    }
    println!(
        "{sent} assignments to {NODES} streams in {:?}, up to {last}",
        started.elapsed()
    );
}
