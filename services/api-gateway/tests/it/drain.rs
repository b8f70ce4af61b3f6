//! Drains through the API: begun, changed, ended, and other changes of the node meanwhile.

use model::NodeStatus;
use proto::v1;
use tonic::{Code, Status};

use crate::sessions::register as register_node;
use crate::support::{Suite, alloc, ask, job, node};

async fn update(
    suite: &Suite,
    gateway: usize,
    request: v1::UpdateNodeDrainRequest,
) -> Result<v1::UpdateNodeDrainResponse, Status> {
    let answer = suite.nodes(gateway).update_drain(ask(request)).await?;
    Ok(answer.into_inner())
}

fn drain(node_id: &str, deadline_ns: i64) -> v1::UpdateNodeDrainRequest {
    v1::UpdateNodeDrainRequest {
        node_id: node_id.to_owned(),
        drain_spec: Some(v1::DrainSpec {
            deadline_ns,
            ignore_system_jobs: true,
        }),
        mark_eligible: false,
        meta: [("message".to_owned(), "new disks".to_owned())].into(),
    }
}

fn end(node_id: &str, mark_eligible: bool) -> v1::UpdateNodeDrainRequest {
    v1::UpdateNodeDrainRequest {
        node_id: node_id.to_owned(),
        mark_eligible,
        ..Default::default()
    }
}

async fn shown(suite: &Suite, gateway: usize, node_id: &str) -> v1::Node {
    let request = v1::GetNodeRequest {
        node_id: node_id.to_owned(),
        ..Default::default()
    };
    let answer = suite.nodes(gateway).get(ask(request)).await.unwrap();
    answer.into_inner().node.unwrap()
}

#[tokio::test]
async fn a_drain_is_begun_shown_kept_and_ended() {
    let suite = Suite::start(2).await;
    let mut ready = node(1);
    ready.status = NodeStatus::Ready;
    suite.put_node(&ready).await;
    let id = ready.id.to_string();
    let web = job("web");
    let registered = suite.register(&web).await;
    suite
        .put_alloc(&alloc(1, &web, &ready, registered.index))
        .await;

    let begun = update(&suite, 0, drain(&id[..8], 60_000_000_000))
        .await
        .unwrap();
    assert_eq!((begun.eval_ids.len(), begun.eval_create_index), (0, 0));
    let there = shown(&suite, 1, &id).await;
    assert_eq!(there.modify_index, begun.node_modify_index);
    assert_eq!(there.eligibility, "ineligible");
    let strategy = there.drain.unwrap();
    assert_eq!(strategy.spec, drain(&id, 60_000_000_000).drain_spec);
    assert_eq!(
        strategy.force_deadline_ns,
        strategy.started_at_ns + 60_000_000_000
    );
    let last = there.last_drain.unwrap();
    assert_eq!(
        (&*last.status, &*last.meta["message"]),
        ("draining", "new disks")
    );
    assert_eq!(
        there.events.last().unwrap().message,
        "Node drain strategy set"
    );

    // It does not become eligible, and a node that registers again knows nothing of it.
    let eligible = v1::UpdateNodeEligibilityRequest {
        node_id: id.clone(),
        eligibility: "eligible".to_owned(),
    };
    let refused = suite.nodes(0).update_eligibility(ask(eligible)).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let text = "can not set node's scheduling eligibility to eligible while it is draining";
    assert!(refused.message().starts_with(text), "{}", refused.message());
    let mut changed = ready.clone();
    changed.meta.insert("rack".to_owned(), "r7".to_owned());
    register_node(&suite, 0, &changed).await.unwrap();
    let there = shown(&suite, 0, &id).await;
    assert_eq!(there.drain, Some(strategy));
    assert_eq!((there.events.len(), &*there.meta["rack"]), (1, "r7"));

    let forced = update(&suite, 1, drain(&id, -1)).await.unwrap();
    let there = shown(&suite, 1, &id).await;
    assert_eq!(there.modify_index, forced.node_modify_index);
    let now = there.drain.unwrap();
    assert_eq!(now.spec.unwrap().deadline_ns, -1_000_000_000);
    assert_eq!(now.started_at_ns, strategy.started_at_ns);

    let ended = update(&suite, 0, end(&id, true)).await.unwrap();
    assert_eq!(ended.eval_ids.len(), 1, "the job on it may want more of it");
    assert_eq!(ended.eval_create_index, ended.node_modify_index);
    let there = shown(&suite, 1, &id).await;
    assert_eq!((there.drain, &*there.eligibility), (None, "eligible"));
    assert_eq!(there.last_drain.unwrap().status, "canceled");
    // The same again writes nothing.
    let again = update(&suite, 1, end(&id, true)).await.unwrap();
    assert_eq!(again.node_modify_index, ended.node_modify_index);
    assert!(again.eval_ids.is_empty());
}

#[tokio::test]
async fn contradictory_drain_requests_are_refused() {
    let suite = Suite::start(1).await;
    suite.put_node(&node(1)).await;
    let id = node(1).id.to_string();
    let both = v1::UpdateNodeDrainRequest {
        mark_eligible: true,
        ..drain(&id, 0)
    };
    let status = update(&suite, 0, both).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status.message().contains("mark_eligible"),
        "{}",
        status.message()
    );
    let unknown = update(&suite, 0, drain(&node(2).id.to_string(), 0)).await;
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
    assert!(shown(&suite, 0, &id).await.drain.is_none());
}
