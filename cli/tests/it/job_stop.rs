//! `kafila job stop`

use proto::v1;

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::world::World;

#[tokio::test]
async fn a_job_is_stopped_and_its_evaluation_followed() {
    let gateway = Gateway::start(World::running()).await;
    for line in ["job stop web", "stop web"] {
        let said = kafila(line).at(&gateway.address).await;
        said.ended(0).printed(&[
            "Monitoring evaluation \"1a2b3c4d\"",
            "Evaluation \"1a2b3c4d\" finished with status \"complete\"\n",
        ]);
        assert!(
            !said.stdout.contains("Monitoring deployment"),
            "{}",
            said.stdout
        );
    }
    let world = gateway.world();
    let request = &world.deregister_requests[0];
    assert_eq!(
        (request.job_id.as_str(), request.namespace.as_str()),
        ("web", "default")
    );
    assert!(!request.purge);
    assert!(!request.request_id.is_empty(), "a second try is safe");
}

#[tokio::test]
async fn purge_detach_and_priority_are_passed_on() {
    let gateway = Gateway::start(World::running()).await;
    let line = "job stop -purge -detach -eval-priority=70 web";
    let said = kafila(line).at(&gateway.address).await;
    assert_eq!(
        said.ended(0).stdout,
        format!("Evaluation ID: {}\n", fixtures::EVAL)
    );
    let world = gateway.world();
    assert!(world.deregister_requests[0].purge);
    assert_eq!(world.deregister_requests[0].eval_priority, 70);
    assert_eq!(world.calls("GetEvaluation"), 0);
}

#[tokio::test]
async fn the_start_of_an_id_is_asked_about() {
    let gateway = Gateway::start(World::running()).await;
    let table = [
        ("job stop -detach we", "y\n", 0, 1, "Evaluation ID"),
        ("job stop -detach we", "n\n", 0, 0, "Cancelling job stop"),
        ("job stop -detach we", "\n", 0, 0, "Cancelling job stop"),
        ("job stop -detach we", "", 1, 0, "Are you sure"),
        ("job stop -detach we", "yes\n", 1, 0, "Are you sure"),
        ("job stop -detach -yes we", "", 0, 1, "Evaluation ID"),
        ("job stop -detach web", "", 0, 1, "Evaluation ID"),
    ];
    for (line, answer, code, stopped, printed) in table {
        gateway.world().deregister_requests.clear();
        let said = kafila(line).stdin(answer).at(&gateway.address).await;
        said.ended(code).printed(&[printed]);
        assert_eq!(
            gateway.world().deregister_requests.len(),
            stopped,
            "{line} {answer:?}"
        );
    }
    let said = kafila("job stop we").at(&gateway.address).await;
    said.ended(1)
        .complained(&["nobody is there to say whether \"web\" is meant", "-yes"]);
    let said = kafila("job stop we")
        .stdin("Y\n")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["For confirmation, an exact 'y' is required."]);
}

#[tokio::test]
async fn several_jobs_are_stopped_at_once_whatever_becomes_of_one() {
    let mut world = World::running();
    world.stubs.push(v1::JobStub {
        id: "api".to_owned(),
        ..fixtures::stub()
    });
    let gateway = Gateway::start(world).await;
    let said = kafila("job stop web nothing api")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["No job(s) with prefix or ID \"nothing\" found"]);
    assert_eq!(
        said.stdout
            .matches("finished with status \"complete\"")
            .count(),
        2
    );
    for line in said.stdout.lines() {
        assert!(
            line.starts_with("web: ") || line.starts_with("api: "),
            "{line}"
        );
    }
    let said = kafila("job stop -detach web api")
        .at(&gateway.address)
        .await;
    // Both at the same time, so whichever is first.
    said.printed(&["web: Evaluation ID: "]);
    said.printed(&["api: Evaluation ID: "]);
    gateway.world().deregister_requests.drain(..2);
    let world = gateway.world();
    let mut stopped: Vec<&str> = world
        .deregister_requests
        .iter()
        .map(|request| request.job_id.as_str())
        .collect();
    stopped.sort_unstable();
    assert_eq!(stopped, ["api", "web"]);
}

#[tokio::test]
async fn a_job_that_is_not_there_is_named() {
    let gateway = Gateway::start(World::running()).await;
    let said = kafila("job stop api").at(&gateway.address).await;
    said.ended(1)
        .complained(&["No job(s) with prefix or ID \"api\" found"]);
}

#[tokio::test]
async fn a_job_that_vanished_meanwhile_needs_no_watching() {
    let world = World {
        deregistered: v1::DeregisterJobResponse::default(),
        ..World::running()
    };
    let gateway = Gateway::start(world).await;
    for line in ["job stop web", "job stop -purge -detach web"] {
        let said = kafila(line).at(&gateway.address).await;
        let expected = "Job \"web\" is gone already: nothing was left to stop\n";
        assert_eq!(said.ended(0).stdout, expected, "{line}");
    }
}
