//! The loop against the stand-in for Consul.

use consul::ConsulConfig;
use consul::agent::CheckRegistration;
use consul_test_kit::{Consul, Fault};
use rand::SeedableRng as _;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

struct Running {
    services: Services,
    end: oneshot::Sender<()>,
    run: JoinHandle<()>,
}

fn run(consul: &Consul) -> Running {
    run_with(consul, LEFTOVERS_AFTER)
}

fn run_with(consul: &Consul, leftovers_after: Duration) -> Running {
    let config = ConsulConfig {
        address: consul.address(),
        timeout: Duration::from_secs(2),
        ..ConsulConfig::default()
    };
    let services = Services {
        leftovers_after,
        ..Services::new(Client::open(&config).unwrap())
    };
    let (end, ended) = oneshot::channel::<()>();
    let looping = services.clone();
    let run = tokio::spawn(async move {
        let rng = StdRng::seed_from_u64(1);
        looping.run(rng, async { drop(ended.await) }).await;
    });
    Running { services, end, run }
}

fn service(number: u32, tag: &str) -> Registration {
    Registration {
        id: format!("_nomad-task-{number}"),
        name: "web".to_owned(),
        tags: vec![tag.to_owned()],
        checks: vec![CheckRegistration {
            id: format!("_nomad-check-{number}"),
            name: format!("check {number}"),
            probe: CheckProbe::Tcp {
                target: "127.0.0.1:1".to_owned(),
            },
            ..CheckRegistration::default()
        }],
        ..Registration::default()
    }
}

/// Waits until the condition holds.
async fn until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), waiting)
        .await
        .expect("the condition holds in time");
}

fn tags(consul: &Consul, id: &str) -> Option<String> {
    let services = consul.services();
    Some(services.get(id)?["Tags"][0].as_str()?.to_owned())
}

#[tokio::test]
async fn services_follow_their_owners() {
    let consul = Consul::start().await;
    consul.put_service(json!({"ID": "theirs", "Name": "theirs"}));
    let Running { services, end, run } = run(&consul);
    services.put("a", vec![service(1, "v1"), service(2, "v1")]);
    until(|| consul.services().len() == 3).await;
    services.put("a", vec![service(1, "v2")]);
    until(|| tags(&consul, "_nomad-task-1").as_deref() == Some("v2")).await;
    until(|| consul.services().len() == 2).await;
    assert_eq!(consul.checks().len(), 1);
    let writes = consul.writes().len();
    services.put("a", vec![service(1, "v2")]);
    services.put("b", Vec::new());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(consul.writes().len(), writes, "nothing has changed");
    services.put("a", Vec::new());
    // Not woken yet: the end of the loop deregisters it.
    let _ = end.send(());
    run.await.unwrap();
    let left: Vec<String> = consul.services().into_keys().collect();
    assert_eq!(left, ["theirs"]);
}

#[tokio::test]
async fn states_of_checks_come_back_and_a_lost_service_is_registered_again() {
    let consul = Consul::start().await;
    let running = run(&consul);
    let services = &running.services;
    let states = services.states();
    services.put("a", vec![service(1, "v1")]);
    let state = || {
        let states = states.borrow().by_id.clone();
        states.get("_nomad-check-1").map(|report| report.state)
    };
    until(|| state() == Some(CheckState::Critical)).await;
    consul.set_check("check 1", "passing");
    until(|| state() == Some(CheckState::Passing)).await;
    let round = states.borrow().round;
    until(|| states.borrow().round > round).await;
    consul.forget_services();
    until(|| consul.services().len() == 1).await;
}

#[tokio::test]
async fn an_outage_is_waited_out() {
    let mut consul = Consul::start().await;
    consul.stop();
    let running = run(&consul);
    running.services.put("a", vec![service(1, "v1")]);
    tokio::time::sleep(Duration::from_millis(200)).await;
    consul.serve().await;
    until(|| consul.services().len() == 1).await;
    consul.fail(Some(Fault::NoLeader));
    running.services.put("a", Vec::new());
    tokio::time::sleep(Duration::from_millis(200)).await;
    consul.fail(None);
    until(|| consul.services().is_empty()).await;
}

#[tokio::test]
async fn leftovers_of_a_dead_node_go_after_a_while() {
    let consul = Consul::start().await;
    let left = json!({"ID": "_nomad-task-9-group-web-old-http", "Name": "old"});
    consul.put_service(left);
    consul.put_service(json!({"ID": "theirs", "Name": "theirs"}));
    let running = run_with(&consul, Duration::from_secs(1));
    let services = &running.services;
    services.put("a", vec![service(1, "v1")]);
    until(|| consul.services().len() == 3).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // A change is the next comparison.
    services.put("a", vec![service(1, "v2")]);
    until(|| consul.services().len() == 2).await;
    let ids: Vec<String> = consul.services().into_keys().collect();
    assert_eq!(ids, ["_nomad-task-1", "theirs"]);
}
