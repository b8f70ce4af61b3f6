//! What the agent keeps, and in which order.

use model::NodeId;
use task_drivers::MockDriver;
use test_kit::builders;

use super::*;
use crate::assignment::Assigned;
use crate::local_state::LocalState;

fn assigned(modify_index: u64) -> Assigned {
    let job = builders::service("web", 1);
    let alloc = builders::allocation(1, &job, NodeId::from_random(1));
    let assignment = Assignment {
        alloc: Arc::new(alloc),
        job: Arc::new(job),
        modify_index,
        trace_parent: String::new(),
    };
    Assigned {
        assignment,
        is_client_terminal: false,
    }
}

#[tokio::test]
async fn a_revision_is_on_disk_no_later_than_what_was_done_about_it() {
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
async fn a_list_that_is_not_understood_in_full_still_opens_the_reports() {
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
    assert_eq!(agent.lock().leftovers.len(), 1, "somebody may want it");
    agent
        .apply(Update {
            has_nameless: false,
            ..update
        })
        .await;
    assert!(agent.lock().leftovers.is_empty());
}
