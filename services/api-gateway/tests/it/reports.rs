//! Reports of nodes: stored before they are answered, with the evaluations that they cause.

use std::collections::BTreeMap;

use model::{AllocClient, AllocId, ClientStatus, Node, NodeStatus, TaskEvent, TaskState};
use proto::internal::v1::{AllocationReport, ReportAllocationsRequest};
use proto::v1;
use state::{Entity, Key};
use test_kit::writes;
use tonic::{Code, Status};

use crate::sessions::register;
use crate::support::{Suite, alloc, ask, job, node};

async fn report(
    suite: &Suite,
    gateway: usize,
    node: &Node,
    reports: &[(AllocId, ClientStatus)],
) -> Result<u64, Status> {
    let reports = reports.iter().map(|(alloc_id, status)| AllocationReport {
        alloc_id: alloc_id.to_string(),
        client: Some(
            (&AllocClient {
                status: *status,
                ..AllocClient::default()
            })
                .into(),
        ),
    });
    let request = ReportAllocationsRequest {
        node_id: node.id.to_string(),
        secret: node.secret.clone(),
        reports: reports.collect(),
    };
    let response = suite
        .sessions(gateway)
        .report_allocations(ask(request))
        .await?;
    Ok(response.into_inner().revision)
}

async fn stored_status(suite: &Suite, alloc_id: AllocId) -> Option<(ClientStatus, u64)> {
    let stored = suite.get(&Key::AllocClient(alloc_id)).await?;
    let Entity::AllocClient(client) = stored.entity else {
        panic!("{:?}", stored.entity)
    };
    Some((client.status, stored.mod_revision))
}

async fn evals(suite: &Suite, trigger: &str) -> Vec<v1::Evaluation> {
    let request = v1::ListEvaluationsRequest::default();
    let list = suite
        .evaluations(0)
        .list(ask(request))
        .await
        .unwrap()
        .into_inner();
    list.evaluations
        .into_iter()
        .filter(|eval| eval.triggered_by == trigger)
        .collect()
}

#[tokio::test]
async fn a_report_is_stored_when_it_is_answered_and_repeats_write_nothing() {
    let (suite, node, job) = (Suite::start(2).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    let placed = alloc(1, &job, &node, registered.index);
    suite.put_alloc(&placed).await;
    let running = [(placed.id, ClientStatus::Running)];
    let revision = report(&suite, 0, &node, &running).await.unwrap();
    assert_eq!(
        stored_status(&suite, placed.id).await,
        Some((ClientStatus::Running, revision))
    );
    // Through another gateway, which may be a moment behind.
    assert!(report(&suite, 1, &node, &running).await.unwrap() >= revision);
    assert_eq!(
        stored_status(&suite, placed.id).await,
        Some((ClientStatus::Running, revision))
    );
    let done = [(placed.id, ClientStatus::Complete)];
    let revision = report(&suite, 1, &node, &done).await.unwrap();
    assert_eq!(
        stored_status(&suite, placed.id).await,
        Some((ClientStatus::Complete, revision))
    );
    let get = v1::GetAllocationRequest {
        alloc_id: placed.id.to_string(),
        ..Default::default()
    };
    let shown = suite
        .allocations(0)
        .get(ask(get))
        .await
        .unwrap()
        .into_inner()
        .allocation
        .unwrap();
    assert_eq!(
        (shown.client_status.as_str(), shown.modify_index),
        ("complete", revision)
    );
}

/// Told through one gateway that it runs, and late, through the other, that it began to.
#[tokio::test]
async fn a_report_that_comes_late_through_another_gateway_changes_nothing() {
    let (suite, node, job) = (Suite::start(2).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    let placed = alloc(1, &job, &node, registered.index);
    suite.put_alloc(&placed).await;
    let send = async |gateway: usize, number: u64, description: &str| {
        let client = AllocClient {
            status: ClientStatus::Running,
            description: description.to_owned(),
            report: number,
            ..AllocClient::default()
        };
        let report = AllocationReport {
            alloc_id: placed.id.to_string(),
            client: Some((&client).into()),
        };
        let request = ReportAllocationsRequest {
            node_id: node.id.to_string(),
            secret: node.secret.clone(),
            reports: vec![report],
        };
        let mut sessions = suite.sessions(gateway);
        let answer = sessions.report_allocations(ask(request)).await.unwrap();
        let newer = answer.into_inner().newer_reports;
        newer
            .iter()
            .map(|newer| newer.report_number)
            .collect::<Vec<_>>()
    };
    assert!(send(0, 2, "running").await.is_empty());
    let stored = suite.get(&Key::AllocClient(placed.id)).await;
    assert_eq!(send(1, 1, "starting").await, [2]);
    assert!(send(1, 2, "running").await.is_empty(), "sent again");
    assert_eq!(suite.get(&Key::AllocClient(placed.id)).await, stored);
    assert!(send(1, 3, "well").await.is_empty());
    assert_ne!(suite.get(&Key::AllocClient(placed.id)).await, stored);
}

#[tokio::test]
async fn scenario_067_failures_of_one_job_in_one_batch_make_one_evaluation() {
    let (suite, node, job) = (Suite::start(1).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    let mut reports = Vec::new();
    for number in 1..=3 {
        let placed = alloc(number, &job, &node, registered.index);
        suite.put_alloc(&placed).await;
        reports.push((placed.id, ClientStatus::Failed));
    }
    let revision = report(&suite, 0, &node, &reports).await.unwrap();
    let made = evals(&suite, "alloc-failure").await;
    assert_eq!(made.len(), 1);
    assert_eq!(
        made[0].create_index, revision,
        "in the same transaction as the reports"
    );
    for (alloc_id, _) in &reports {
        assert_eq!(
            stored_status(&suite, *alloc_id).await,
            Some((ClientStatus::Failed, revision))
        );
    }
    report(&suite, 0, &node, &reports).await.unwrap();
    assert_eq!(
        evals(&suite, "alloc-failure").await.len(),
        1,
        "a repeat makes none"
    );
}

#[tokio::test]
async fn many_nodes_reports_are_stored_together() {
    const NODES: u128 = 60;
    const EACH: u128 = 20;
    let (suite, job) = (Suite::start(1).await, job("web"));
    let registered = suite.register(&job).await;
    let nodes: Vec<Node> = (1..=NODES).map(node).collect();
    let writer = suite.store.unfenced_writer();
    let mut placed = Vec::new();
    for node in &nodes {
        let mut txn = writer.txn();
        txn.add(&writes::create(&Key::Node(node.id), node)).unwrap();
        let mut ids = Vec::new();
        for _ in 0..EACH {
            let number = 1 + placed.len() as u128 * EACH + ids.len() as u128;
            let alloc = alloc(number, &job, node, registered.index);
            txn.add(&writes::create(&Key::Alloc(alloc.id), &alloc))
                .unwrap();
            ids.push((alloc.id, ClientStatus::Running));
        }
        writer
            .commit_surely(&txn, crate::support::WAIT_LIMIT)
            .await
            .unwrap()
            .revision()
            .unwrap();
        placed.push(ids);
    }
    let before = suite.store.current_revision().await.unwrap();
    let calls = nodes
        .iter()
        .zip(&placed)
        .map(|(node, ids)| report(&suite, 0, node, ids));
    let mut revisions = Vec::new();
    for result in futures::future::join_all(calls).await {
        revisions.push(result.unwrap());
    }
    let transactions = suite.store.current_revision().await.unwrap() - before;
    assert!(
        transactions < 40,
        "{transactions} transactions for {NODES} calls"
    );
    for (alloc_id, _) in placed.iter().flatten() {
        let (status, revision) = stored_status(&suite, *alloc_id).await.unwrap();
        assert_eq!(status, ClientStatus::Running);
        assert!(revisions.contains(&revision));
    }
}

#[tokio::test]
async fn a_node_may_speak_for_itself_only() {
    let (suite, here, there, job) = (Suite::start(1).await, node(1), node(2), job("web"));
    register(&suite, 0, &here).await.unwrap();
    register(&suite, 0, &there).await.unwrap();
    let registered = suite.register(&job).await;
    let mine = alloc(1, &job, &here, registered.index);
    let theirs = alloc(2, &job, &there, registered.index);
    for placed in [&mine, &theirs] {
        suite.put_alloc(placed).await;
    }
    let both = [
        (mine.id, ClientStatus::Running),
        (theirs.id, ClientStatus::Complete),
    ];
    let status = report(&suite, 0, &here, &both).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(
        status.message().contains(&theirs.id.to_string()),
        "{}",
        status.message()
    );
    assert_eq!(
        stored_status(&suite, mine.id).await,
        None,
        "nothing of it is stored"
    );
    let thief = Node {
        secret: "guessed".to_owned(),
        ..there
    };
    let status = report(&suite, 0, &thief, &both[1..]).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn reports_of_a_disconnected_node_are_refused_until_it_returns() {
    for away in [NodeStatus::Down, NodeStatus::Disconnected] {
        let (suite, node, job) = (Suite::start(1).await, node(1), job("web"));
        suite
            .put_node(&Node {
                status: away,
                ..node.clone()
            })
            .await;
        let registered = suite.register(&job).await;
        let placed = alloc(1, &job, &node, registered.index);
        suite.put_alloc(&placed).await;
        let running = [(placed.id, ClientStatus::Running)];
        let status = report(&suite, 0, &node, &running).await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(
            status.message().contains(away.as_str()),
            "{}",
            status.message()
        );
        let back = suite
            .put_node(&Node {
                status: NodeStatus::Initializing,
                ..node.clone()
            })
            .await;
        // Linearizable, so the gateway has seen that it is back.
        let get = v1::GetNodeRequest {
            node_id: node.id.to_string(),
            ..Default::default()
        };
        let shown = suite
            .nodes(0)
            .get(ask(get))
            .await
            .unwrap()
            .into_inner()
            .node
            .unwrap();
        assert_eq!(shown.modify_index, back);
        report(&suite, 0, &node, &running).await.unwrap();
    }
}

#[tokio::test]
async fn reports_of_what_was_collected_are_taken_and_forgotten() {
    let (suite, node, job) = (Suite::start(1).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let ghost = alloc(1, &job, &node, 1);
    report(&suite, 0, &node, &[(ghost.id, ClientStatus::Complete)])
        .await
        .unwrap();
    assert_eq!(stored_status(&suite, ghost.id).await, None);
}

#[tokio::test]
async fn a_report_and_a_rival_write_end_with_the_report() {
    let (suite, node, job) = (Suite::start(1).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    let placed = alloc(1, &job, &node, registered.index);
    suite.put_alloc(&placed).await;
    // A gateway that decides on what it last saw meets a key that has moved on, again and again.
    for _ in 0..20 {
        let pending = AllocClient::default();
        suite
            .put(
                &Key::AllocClient(placed.id),
                &Entity::AllocClient(Box::new(pending)),
            )
            .await;
        let running = [(placed.id, ClientStatus::Running)];
        let revision = report(&suite, 0, &node, &running).await.unwrap();
        let (status, at) = stored_status(&suite, placed.id).await.unwrap();
        assert_eq!((status, at <= revision), (ClientStatus::Running, true));
    }
}

#[tokio::test]
async fn a_report_too_large_to_store_is_refused_alone_and_delays_no_other() {
    const GOOD: u128 = 20;
    let (suite, good, bad, job) = (Suite::start(1).await, node(1), node(2), job("web"));
    register(&suite, 0, &good).await.unwrap();
    register(&suite, 0, &bad).await.unwrap();
    let registered = suite.register(&job).await;
    for number in 1..=GOOD {
        let placed = alloc(number, &job, &good, registered.index);
        suite.put_alloc(&placed).await;
    }
    let theirs = alloc(GOOD + 1, &job, &bad, registered.index);
    suite.put_alloc(&theirs).await;
    let mut long_name = AllocClient::default();
    long_name
        .task_states
        .insert("n".repeat(1_500_000), TaskState::default());
    let mut long_key = AllocClient::default();
    let event = TaskEvent {
        details: BTreeMap::from([("k".repeat(1_500_000), "v".to_owned())]),
        ..TaskEvent::default()
    };
    let state = TaskState {
        events: vec![event],
        ..TaskState::default()
    };
    long_key.task_states.insert("server".to_owned(), state);
    let request = |client: &AllocClient| ReportAllocationsRequest {
        node_id: bad.id.to_string(),
        secret: bad.secret.clone(),
        reports: vec![AllocationReport {
            alloc_id: theirs.id.to_string(),
            client: Some(client.into()),
        }],
    };
    let poison = futures::future::join_all((0..4).map(async |_| {
        let mut sessions = suite.sessions(0);
        let refused = sessions.report_allocations(ask(request(&long_name))).await;
        let cut = sessions.report_allocations(ask(request(&long_key))).await;
        (refused.map(|_| ()), cut.map(|_| ()))
    }));
    let others = futures::future::join_all((1..=GOOD).map(async |number| {
        let running = [(alloc(number, &job, &good, 0).id, ClientStatus::Running)];
        report(&suite, 0, &good, &running).await
    }));
    let (poison, others) = tokio::join!(poison, others);
    for result in others {
        result.unwrap();
    }
    for (refused, cut) in poison {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        let field = "reports[0].client.task_states";
        assert!(refused.message().contains(field), "{}", refused.message());
        cut.unwrap();
    }
}
