//! Order of the agent's writes, and its handling of revisions and stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use lifecycle::{Assigned, Assignment, Update};
use local_state::{LocalState, NodeState, decode};
use model::{AllocId, NodeId};
use service_kit::CancellationToken;
use task_drivers::{MockDriver, TaskId};
use test_kit::builders;

use super::agent::Agent;
use crate::context::Context;

fn assigned(modify_index: u64) -> Assigned {
    let job = builders::service("web", 1);
    let alloc = builders::allocation(1, &job, NodeId::from_random(1));
    let assignment = Assignment {
        alloc: Arc::new(alloc),
        job: Arc::new(job),
        modify_index,
        trace_parent: String::new(),
        volume_paths: BTreeMap::new(),
    };
    Assigned {
        assignment,
        is_client_terminal: false,
    }
}

#[tokio::test]
async fn a_revision_is_durable_no_later_than_its_changes() {
    let (state, mut next_write) = LocalState::recorded();
    let context = Arc::new(Context::for_test(state, MockDriver::default()));
    let agent = Agent::new(context, CancellationToken::new());
    let update = Update {
        revision: 8,
        is_full: true,
        assigned: vec![assigned(7)],
        ..Update::default()
    };
    agent.apply(update).await;
    let (key, value) = next_write().unwrap();
    assert_eq!(key, "node");
    let node: NodeState = decode(&key, &value).unwrap();
    assert_eq!(node.revision, 8);
    let (key, _) = next_write().unwrap();
    assert!(key.starts_with("alloc/"), "{key}");
}

#[tokio::test]
async fn after_a_restored_store_the_node_starts_over_from_a_full_list() {
    let (state, mut next_write) = LocalState::recorded();
    let context = Arc::new(Context::for_test(state, MockDriver::default()));
    let agent = Agent::new(Arc::clone(&context), CancellationToken::new());
    let list = |store_id: &str, revision, assigned| Update {
        revision,
        store_id: store_id.to_owned(),
        is_full: true,
        assigned,
        ..Update::default()
    };
    // A gateway that does not name its store, then one that does.
    agent.apply(list("", 80, vec![assigned(70)])).await;
    agent.apply(list("one", 80, vec![assigned(70)])).await;
    let alloc_id = assigned(70).assignment.alloc.id;
    context.tasks.reporter.queue().restore_acked(alloc_id, 1);
    while next_write().is_some() {}
    // The same store, from gateways that are behind.
    for store_id in ["", "one"] {
        agent.apply(list(store_id, 9, Vec::new())).await;
        assert_eq!(agent.seen_revision(), 80);
        assert!(!agent.lock().allocs[&alloc_id].is_collected);
    }
    let change = Update {
        is_full: false,
        ..list("two", 9, Vec::new())
    };
    assert!(!agent.apply(change).await);
    assert_eq!(agent.seen_revision(), 80, "only a full list starts over");
    assert!(next_write().is_none());
    let mut older = assigned(7);
    let previous = Some(AllocId::from_random(9));
    Arc::make_mut(&mut older.assignment.alloc).previous_alloc = previous;
    agent.apply(list("two", 9, vec![older])).await;
    assert_eq!(agent.seen_revision(), 9);
    let known = agent.lock().allocs[&alloc_id].clone();
    assert_eq!(known.assignment.alloc.previous_alloc, previous);
    assert!(!known.is_collected);
    assert!(
        !context.tasks.reporter.queue().is_acked(alloc_id),
        "to be reported again"
    );
    let mut keys = Vec::new();
    while let Some((key, value)) = next_write() {
        if key == "node" {
            let node: NodeState = decode(&key, &value).unwrap();
            assert_eq!((node.revision, node.store_id.as_str()), (9, "two"));
        }
        keys.push(key.split('/').next().unwrap().to_owned());
    }
    keys.retain(|key| key != "runner");
    assert_eq!(keys, ["alloc", "acked", "node", "alloc"]);
    // An allocation unknown to the restored store is not wanted any more.
    agent.apply(list("three", 5, Vec::new())).await;
    assert!(agent.lock().allocs[&alloc_id].is_collected);
}

#[tokio::test]
async fn a_list_with_a_nameless_assignment_still_opens_the_reports() {
    let context = Arc::new(Context::for_test(LocalState::none(), MockDriver::default()));
    let agent = Agent::new(Arc::clone(&context), CancellationToken::new());
    let kept = TaskId {
        alloc_id: AllocId::from_random(5),
        task: "server".to_owned(),
        attempt: 1,
    };
    agent.lock().leftovers.insert(kept.alloc_id, vec![kept]);
    let update = Update {
        revision: 8,
        is_full: true,
        has_nameless: true,
        ..Update::default()
    };
    agent.apply(update.clone()).await;
    assert!(agent.lock().is_contacted);
    assert_eq!(
        agent.lock().leftovers.len(),
        1,
        "the nameless assignment may be its owner"
    );
    agent
        .apply(Update {
            has_nameless: false,
            ..update
        })
        .await;
    assert!(agent.lock().leftovers.is_empty());
}
