//! The stream of events: in order, from any index that is kept, through any gateway.

use std::time::Duration;

use model::{
    AllocClient, Allocation, ClientStatus, Deployment, DeploymentGroup, DeploymentId,
    DeploymentStatus, DesiredStatus, EvalStatus, Evaluation, Timestamp,
};
use proto::v1;
use proto::v1::event::Payload;
use state::{Entity, Key};
use test_kit::proxy::Mode;
use tokio::time::timeout;
use tonic::{Code, Status, Streaming};

use crate::support::{Suite, WAIT_LIMIT, alloc, ask, job, node};

async fn stream(
    suite: &Suite,
    gateway: usize,
    request: v1::StreamEventsRequest,
) -> Result<Streaming<v1::EventBatch>, Status> {
    let opened = suite.events(gateway).stream(request).await;
    Ok(opened?.into_inner())
}

fn from(index: u64) -> v1::StreamEventsRequest {
    v1::StreamEventsRequest {
        index,
        bookmark_interval: Some(proto::duration_to_wire(Duration::from_secs(1))),
        ..Default::default()
    }
}

async fn next(events: &mut Streaming<v1::EventBatch>) -> Result<v1::EventBatch, Status> {
    let message = timeout(WAIT_LIMIT, events.message());
    let batch = message.await.expect("bookmarks keep coming")?;
    Ok(batch.expect("it ends with a reason"))
}

/// Returns the next batch that has events.
async fn next_batch(events: &mut Streaming<v1::EventBatch>) -> v1::EventBatch {
    loop {
        let batch = next(events).await.unwrap();
        if !batch.events.is_empty() {
            return batch;
        }
    }
}

fn lines(batch: &v1::EventBatch) -> Vec<(String, String, String)> {
    let line = |event: &v1::Event| {
        assert_eq!(event.index, batch.index);
        (event.topic.clone(), event.r#type.clone(), event.key.clone())
    };
    batch.events.iter().map(line).collect()
}

fn is(batch: &v1::EventBatch, want: &[(&str, &str)]) {
    let lines = lines(batch);
    let shown = lines.iter().map(|(topic, kind, _)| (&**topic, &**kind));
    let shown: Vec<_> = shown.collect();
    assert_eq!(shown, want);
}

async fn run(suite: &Suite, number: u128, job_index: u64) -> u64 {
    let placed = alloc(number, &job("web"), &node(1), job_index);
    suite.put_alloc(&placed).await;
    let running = AllocClient {
        status: ClientStatus::Running,
        ..AllocClient::default()
    };
    let entity = Entity::AllocClient(Box::new(running));
    suite.put(&Key::AllocClient(placed.id), &entity).await
}

#[tokio::test]
async fn every_write_has_an_event_in_order_with_its_type() {
    let suite = Suite::start(2).await;
    let mut events = stream(&suite, 1, from(0)).await.unwrap();
    let first = next(&mut events).await.unwrap();
    assert_eq!(first.events, [], "the first says where the stream begins");

    let registered = suite.register(&job("web")).await;
    let batch = next_batch(&mut events).await;
    assert_eq!(batch.index, registered.index);
    assert!(batch.index > first.index);
    let mut topics: Vec<_> = batch.events.iter().map(|event| &*event.topic).collect();
    topics.sort_unstable();
    assert_eq!(topics, ["Evaluation", "Job"]);
    assert!(
        batch
            .events
            .iter()
            .all(|event| event.r#type == "JobRegistered")
    );
    let jobs = batch
        .events
        .iter()
        .filter_map(|event| match &event.payload {
            Some(Payload::Job(job)) => job.id.clone(),
            _ => None,
        });
    assert_eq!(jobs.collect::<Vec<_>>(), ["web"]);

    run(&suite, 1, registered.index).await;
    is(
        &next_batch(&mut events).await,
        &[("Allocation", "PlanResult")],
    );
    is(
        &next_batch(&mut events).await,
        &[("Allocation", "AllocationUpdated")],
    );
    suite.put_node(&node(1)).await;
    is(
        &next_batch(&mut events).await,
        &[("Node", "NodeRegistration")],
    );
    suite.delete(&Key::Node(node(1).id)).await;
    is(
        &next_batch(&mut events).await,
        &[("Node", "NodeDeregistration")],
    );
}

#[tokio::test]
async fn scenario_086_a_stream_begins_with_its_index_and_goes_on_at_another_gateway() {
    let suite = Suite::start(2).await;
    let first = suite.register(&job("a")).await.index;
    let second = suite.register(&job("b")).await.index;
    let third = suite.register(&job("c")).await.index;
    let mut events = stream(&suite, 0, from(first)).await.unwrap();
    assert_eq!(next(&mut events).await.unwrap().index, first - 1);
    assert_eq!(next_batch(&mut events).await.index, first);
    drop(events);
    let mut events = stream(&suite, 1, from(first + 1)).await.unwrap();
    assert_eq!(next_batch(&mut events).await.index, second);
    assert_eq!(next_batch(&mut events).await.index, third);
}

#[tokio::test]
async fn events_of_collected_objects_show_them_as_they_were() {
    let suite = Suite::start(1).await;
    let registered = suite.register(&job("web")).await;
    let reported = run(&suite, 1, registered.index).await;
    let id = alloc(1, &job("web"), &node(1), 1).id;
    suite.delete(&Key::Alloc(id)).await;
    suite.delete(&Key::AllocClient(id)).await;
    let request = v1::StreamEventsRequest {
        filters: vec![v1::EventFilter {
            topic: "Allocation".to_owned(),
            key: "web".to_owned(),
        }],
        ..from(reported)
    };
    let mut events = stream(&suite, 0, request).await.unwrap();
    let batch = next_batch(&mut events).await;
    assert_eq!(batch.index, reported);
    let Some(Payload::Allocation(shown)) = &batch.events[0].payload else {
        panic!("an allocation: {batch:?}");
    };
    assert_eq!((&*shown.job_id, &*shown.client_status), ("web", "running"));
}

#[tokio::test]
async fn bookmarks_go_past_what_the_caller_does_not_want() {
    let suite = Suite::start(1).await;
    let request = v1::StreamEventsRequest {
        filters: vec![v1::EventFilter {
            topic: "Node".to_owned(),
            key: String::new(),
        }],
        ..from(0)
    };
    let mut events = stream(&suite, 0, request).await.unwrap();
    let index = suite.register(&job("web")).await.index;
    loop {
        let batch = next(&mut events).await.unwrap();
        assert_eq!(batch.events, []);
        if batch.index >= index {
            break;
        }
    }
}

#[tokio::test]
async fn scenario_096_an_index_that_is_not_kept_or_never_was_is_out_of_range() {
    let suite = Suite::start(1).await;
    let index = suite.register(&job("web")).await.index;
    let ahead = stream(&suite, 0, from(index + 100)).await.unwrap_err();
    assert_eq!(ahead.code(), Code::OutOfRange, "{ahead:?}");
    assert!(ahead.message().contains(&format!("the newest is {index}")));

    let newest = suite.register(&job("db")).await.index;
    suite.compact(newest).await;
    let mut events = stream(&suite, 0, from(index)).await.unwrap();
    assert_eq!(next(&mut events).await.unwrap().index, index - 1);
    let gone = next(&mut events).await.unwrap_err();
    assert_eq!(gone.code(), Code::OutOfRange, "{gone:?}");
    assert!(gone.message().contains("resume from its index"), "{gone:?}");
}

#[tokio::test]
async fn a_caller_that_takes_nothing_is_cut_off() {
    let suite = Suite::start_with(1, |config| {
        config.event_stream_timeout = Duration::from_millis(300);
    })
    .await;
    let mut events = stream(&suite, 0, from(0)).await.unwrap();
    // More than all buffers on the way hold.
    let mut large = job("large");
    for number in 0..60 {
        let text = format!("{number}").repeat(50_000);
        large.meta.insert("text".to_owned(), text);
        suite.register(&large).await;
    }
    // As long as it would take to be cut off.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cut = loop {
        match next(&mut events).await {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert_eq!(cut.code(), Code::ResourceExhausted, "{cut:?}");
}

#[tokio::test]
async fn a_gateway_that_drains_ends_its_streams() {
    let suite = Suite::start(1).await;
    let mut events = stream(&suite, 0, from(0)).await.unwrap();
    next(&mut events).await.unwrap();
    suite.gateways[0].drain.cancel();
    let ended = loop {
        match next(&mut events).await {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
}

#[tokio::test]
async fn a_store_that_falls_silent_is_no_store_in_which_nothing_happens() {
    let suite = Suite::start(1).await;
    let mut events = stream(&suite, 0, from(0)).await.unwrap();
    next(&mut events).await.unwrap();
    next(&mut events).await.unwrap();
    suite.proxy.set(Mode::Hold);
    // One may have been on its way.
    let mut bookmarks = 0;
    let cut = loop {
        match next(&mut events).await {
            Ok(_) => bookmarks += 1,
            Err(status) => break status,
        }
    };
    assert!(bookmarks <= 1, "{bookmarks} bookmarks of a silent store");
    assert_eq!(cut.code(), Code::Unavailable);
    suite.proxy.set(Mode::Cut);
}

/// Collects the events up to `last`, without bookmarks.
async fn history(events: &mut Streaming<v1::EventBatch>, last: u64) -> Vec<v1::EventBatch> {
    let mut batches = Vec::new();
    loop {
        let batch = next(events).await.unwrap();
        let index = batch.index;
        if !batch.events.is_empty() {
            batches.push(batch);
        }
        if index >= last {
            return batches;
        }
    }
}

fn client(status: ClientStatus) -> Entity {
    Entity::AllocClient(Box::new(AllocClient {
        status,
        ..AllocClient::default()
    }))
}

/// Runs a batch job to its end and stops it, with another hand's canary on the way; returns the
/// last index.
async fn live_through_everything(suite: &Suite) -> u64 {
    let job = test_kit::builders::batch("sum", 2);
    let created = suite.register(&job).await.index;
    let deployment = |promoted: bool| Deployment {
        id: DeploymentId::from_random(7),
        job: job.key(),
        job_version: 0,
        job_modify_index: created,
        job_create_index: created,
        status: DeploymentStatus::Running,
        status_description: String::new(),
        groups: [(
            job.task_groups[0].name.clone(),
            DeploymentGroup {
                promoted,
                desired_canaries: 1,
                ..DeploymentGroup::default()
            },
        )]
        .into(),
        eval_priority: 50,
        create_time: Timestamp::from_secs(1),
        modify_time: Timestamp::from_secs(1),
    };
    suite.put_deployment(&deployment(false)).await;
    let placed = |number| Allocation {
        deployment_id: (number == 1).then(|| DeploymentId::from_random(7)),
        canary: number == 1,
        ..alloc(number, &job, &node(1), created)
    };
    for number in [1, 2] {
        suite.put_alloc(&placed(number)).await;
    }
    use ClientStatus::{Complete, Failed, Running};
    for number in [1, 2] {
        let key = Key::AllocClient(placed(number).id);
        suite.put(&key, &client(Running)).await;
    }
    suite.put_deployment(&deployment(true)).await;
    let ended = Deployment {
        status: DeploymentStatus::Successful,
        ..deployment(true)
    };
    suite.put_deployment(&ended).await;
    // A new version while it runs.
    let mut newer = job.clone();
    newer.priority += 1;
    suite.register(&newer).await;
    let stopped = Allocation {
        desired_status: DesiredStatus::Stop,
        ..placed(1)
    };
    suite.put_alloc(&stopped).await;
    for (number, status) in [(1, Failed), (2, Complete)] {
        let key = Key::AllocClient(placed(number).id);
        suite.put(&key, &client(status)).await;
    }
    let stop = v1::DeregisterJobRequest {
        job_id: "sum".to_owned(),
        ..Default::default()
    };
    let answer = suite.jobs(0).deregister(ask(stop)).await.unwrap();
    // The schedulers have looked: by now the job is dead.
    for eval in [&answer.get_ref().eval_id] {
        let id = eval.parse().unwrap();
        let done = Evaluation {
            id,
            status: EvalStatus::Complete,
            ..test_kit::builders::evaluation(1, &job)
        };
        let entity = Entity::Eval(Box::new(done));
        suite.put(&Key::Eval(id), &entity).await;
    }
    suite.put_node(&node(2)).await
}

#[tokio::test]
async fn a_resumed_stream_has_the_events_of_the_live_one() {
    let suite = Suite::start(2).await;
    let mut events = stream(&suite, 0, from(0)).await.unwrap();
    let begun = next(&mut events).await.unwrap().index;
    let last = live_through_everything(&suite).await;
    let live = history(&mut events, last).await;
    for gateway in [0, 1] {
        let mut events = stream(&suite, gateway, from(begun + 1)).await.unwrap();
        let replayed = history(&mut events, last).await;
        assert_eq!(replayed.len(), live.len());
        for (replayed, live) in replayed.iter().zip(&live) {
            assert_eq!(replayed, live);
        }
    }
    let (mut allocs, mut jobs, mut canary) = (Vec::new(), Vec::new(), Vec::new());
    for event in live.iter().flat_map(|batch| &batch.events) {
        match event.payload.as_ref().unwrap() {
            Payload::Allocation(shown) => {
                assert!(shown.modify_index <= event.index, "{event:?}");
                if shown.desired_status == "run" {
                    allocs.push(shown.client_status.clone());
                }
                canary.push(shown.canary);
            }
            Payload::Job(shown) => {
                assert_eq!(shown.modify_index, Some(event.index));
                jobs.push(shown.status.clone().unwrap());
            }
            _ => {}
        }
    }
    assert_eq!(
        allocs,
        ["pending", "pending", "running", "running", "complete"]
    );
    // It was promoted before it was stopped.
    assert_eq!(canary, [true, false, true, false, false, false, false]);
    assert_eq!(jobs, ["pending", "running", "pending"]);
}
