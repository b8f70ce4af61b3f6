//! Agents that stop their tasks at exit, for development.

use model::ClientStatus;

use crate::gateway::{Cluster, Gateway};
use crate::node::{Place, Running, is_alive, service};

#[tokio::test]
async fn with_stop_tasks_on_exit_tasks_end_and_start_with_the_agent() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let mut config = place.config(&[&gateway.address]);
    config.stop_tasks_on_exit = true;
    let node = Running::start(config.clone()).await;
    let script = "trap 'echo bye; exit 0' INT; echo pid $$; while :; do sleep 0.02; done";
    let id = cluster.assign(1, &service(script));
    cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    node.stop().await;
    assert!(!is_alive(pid));
    place.is_empty().await;
    assert!(place.output(id).ends_with("bye\n"), "in good order");
    assert_eq!(
        cluster.status(id),
        Some(ClientStatus::Running),
        "no report of it"
    );

    let node = Running::start(config).await;
    let client = cluster
        .until_fact("another start", |facts| {
            let client = facts.reported.get(&id)?;
            let events = &client.task_states["server"].events;
            (events.last()?.event_type == "Started" && events.len() > 3).then(|| client.clone())
        })
        .await;
    let state = &client.task_states["server"];
    assert_eq!(state.restarts, 0, "it costs no attempt");
    assert!(
        state
            .events
            .iter()
            .any(|event| event.event_type == "Failed Restoring Task")
    );
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}
