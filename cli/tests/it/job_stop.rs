//! `kafila job stop`

use proto::v1;

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn a_job_is_stopped_and_its_evaluation_followed() {
    let gateway = Gateway::start(FakeState::running()).await;
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
    let state = gateway.state();
    let request = &state.deregister_requests[0];
    assert_eq!(
        (request.job_id.as_str(), request.namespace.as_str()),
        ("web", "default")
    );
    assert!(!request.purge);
    assert!(!request.request_id.is_empty(), "a second try is safe");
}

#[tokio::test]
async fn an_empty_id_stops_nothing() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("job stop -yes").arg("").at(&gateway.address).await;
    said.ended(1).complained(&["the value is empty", "unset"]);
    assert!(gateway.state().deregister_requests.is_empty());
}

#[tokio::test]
async fn purge_detach_and_priority_are_passed_on() {
    let gateway = Gateway::start(FakeState::running()).await;
    let line = "job stop -purge -detach -eval-priority=70 web";
    let said = kafila(line).at(&gateway.address).await;
    assert_eq!(
        said.ended(0).stdout,
        format!("Evaluation ID: {}\n", fixtures::EVAL)
    );
    let state = gateway.state();
    assert!(state.deregister_requests[0].purge);
    assert_eq!(state.deregister_requests[0].eval_priority, 70);
    assert!(!state.deregister_requests[0].no_shutdown_delay);
    assert_eq!(state.calls("GetEvaluation"), 0);
}

#[tokio::test]
async fn the_shutdown_delay_is_skipped_on_request() {
    let gateway = Gateway::start(FakeState::running()).await;
    for line in ["job stop", "stop"] {
        let line = format!("{line} -detach -no-shutdown-delay web");
        kafila(&line).at(&gateway.address).await.ended(0);
        let request = gateway.state().deregister_requests.pop().unwrap();
        assert!(request.no_shutdown_delay, "{line}");
    }
}

#[tokio::test]
async fn the_start_of_an_id_is_asked_about() {
    let gateway = Gateway::start(FakeState::running()).await;
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
        gateway.state().deregister_requests.clear();
        let said = kafila(line).stdin(answer).at(&gateway.address).await;
        said.ended(code).printed(&[printed]);
        assert_eq!(
            gateway.state().deregister_requests.len(),
            stopped,
            "{line} {answer:?}"
        );
    }
    let said = kafila("job stop we").at(&gateway.address).await;
    said.ended(1).complained(&[
        "\"web\" needs a confirmation, and standard input has ended",
        "-yes",
    ]);
    let said = kafila("job stop we")
        .stdin("Y\n")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["For confirmation, an exact 'y' is required."]);
}

#[tokio::test]
async fn several_jobs_are_stopped_at_once_whatever_becomes_of_one() {
    let mut state = FakeState::running();
    state.stubs.push(v1::JobStub {
        id: "api".to_owned(),
        ..fixtures::stub()
    });
    let gateway = Gateway::start(state).await;
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
    gateway.state().deregister_requests.drain(..2);
    let state = gateway.state();
    let mut stopped: Vec<&str> = state
        .deregister_requests
        .iter()
        .map(|request| request.job_id.as_str())
        .collect();
    stopped.sort_unstable();
    assert_eq!(stopped, ["api", "web"]);
}

#[tokio::test]
async fn a_job_that_is_not_there_is_named() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("job stop api").at(&gateway.address).await;
    said.ended(1)
        .complained(&["No job(s) with prefix or ID \"api\" found"]);
}

#[tokio::test]
async fn a_parent_of_jobs_has_no_evaluation_and_the_output_says_what_stops() {
    for (periodic, parameterized, expected) in [
        (
            true,
            false,
            "Job \"web\" stopped: it launches no more jobs. Those that run go on\n",
        ),
        (
            false,
            true,
            "Job \"web\" stopped: it can no longer be dispatched. Dispatched jobs go on\n",
        ),
    ] {
        let mut state = FakeState {
            deregistered: v1::DeregisterJobResponse::default(),
            ..FakeState::running()
        };
        state.stubs[0].periodic = periodic;
        state.stubs[0].parameterized = parameterized;
        let gateway = Gateway::start(state).await;
        for line in ["job stop web", "job stop -detach web"] {
            let said = kafila(line).at(&gateway.address).await;
            assert_eq!(said.ended(0).stdout, expected, "{line}");
        }
    }
}

#[tokio::test]
async fn a_job_that_vanished_meanwhile_needs_no_watching() {
    let state = FakeState {
        deregistered: v1::DeregisterJobResponse::default(),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    for line in ["job stop web", "job stop -purge -detach web"] {
        let said = kafila(line).at(&gateway.address).await;
        let expected = "Job \"web\" no longer exists: nothing to stop\n";
        assert_eq!(said.ended(0).stdout, expected, "{line}");
    }
}
