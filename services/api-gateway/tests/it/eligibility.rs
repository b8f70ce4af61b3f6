//! Eligibility of a node, through the API.

use model::{JobType, NodeStatus};
use proto::v1;
use state::Key;
use tonic::{Code, Status};

use crate::sessions::register as register_node;
use crate::support::{Suite, alloc, ask, job, node};

async fn set(
    suite: &Suite,
    gateway: usize,
    node_id: &str,
    eligibility: &str,
) -> Result<v1::UpdateNodeEligibilityResponse, Status> {
    let request = v1::UpdateNodeEligibilityRequest {
        node_id: node_id.to_owned(),
        eligibility: eligibility.to_owned(),
    };
    let answer = suite
        .nodes(gateway)
        .update_eligibility(ask(request))
        .await?;
    Ok(answer.into_inner())
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
async fn a_node_takes_nothing_new_until_it_is_eligible_again() {
    let suite = Suite::start(2).await;
    let mut ready = node(1);
    ready.status = NodeStatus::Ready;
    suite.put_node(&ready).await;
    let id = ready.id.to_string();
    let (web, mut agent) = (job("web"), job("agent"));
    agent.job_type = JobType::System;
    agent.task_groups[0].count = 1;
    agent.task_groups[0].reschedule = None;
    agent.task_groups[0].migrate = None;
    let registered = suite.register(&web).await;
    suite.register(&agent).await;
    suite
        .put_alloc(&alloc(1, &web, &ready, registered.index))
        .await;

    let away = set(&suite, 0, &id[..8], "ineligible").await.unwrap();
    assert_eq!((away.eval_ids.len(), away.eval_create_index), (0, 0));
    let there = shown(&suite, 1, &id).await;
    assert_eq!(there.eligibility, "ineligible");
    assert_eq!(there.modify_index, away.node_modify_index);
    // The same again writes nothing.
    let again = set(&suite, 1, &id, "ineligible").await.unwrap();
    assert_eq!(again, away);
    // A node that registers again does not make itself eligible.
    let mut changed = ready.clone();
    changed.meta.insert("rack".to_owned(), "r7".to_owned());
    register_node(&suite, 0, &changed).await.unwrap();
    assert_eq!(shown(&suite, 0, &id).await.eligibility, "ineligible");

    let back = set(&suite, 1, &id, "eligible").await.unwrap();
    assert_eq!(back.eval_create_index, back.node_modify_index);
    let mut jobs = Vec::new();
    for eval_id in &back.eval_ids {
        let stored = suite.get(&Key::Eval(eval_id.parse().unwrap())).await;
        let stored = stored.unwrap();
        assert_eq!(stored.create_revision, back.node_modify_index);
        let state::Entity::Eval(eval) = stored.entity else {
            panic!("{eval_id}")
        };
        assert_eq!(eval.node_id, Some(ready.id));
        jobs.push(eval.job.job_id.to_string());
    }
    assert_eq!(jobs, ["agent", "web"]);
}

#[tokio::test]
async fn an_invalid_eligibility_is_refused() {
    let suite = Suite::start(1).await;
    suite.put_node(&node(1)).await;
    let id = node(1).id.to_string();
    let status = set(&suite, 0, &id, "maybe").await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("eligible or ineligible"));
    let unknown = node(2).id.to_string();
    let status = set(&suite, 0, &unknown, "eligible").await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}
