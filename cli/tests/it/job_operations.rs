//! `kafila job dispatch|scale|scaling-events|periodic force|eval|allocs|deployments`

use proto::v1;

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

const CHILD: &str = "web/dispatch-1795262400-0000abcd";

fn parent() -> FakeState {
    let mut state = FakeState::running();
    state.stubs[0].parameterized = true;
    state.dispatched = v1::DispatchJobResponse {
        dispatched_job_id: CHILD.to_owned(),
        eval_id: fixtures::EVAL.to_owned(),
        ..v1::DispatchJobResponse::default()
    };
    state
}

#[tokio::test]
async fn scenario_030_a_dispatch_brings_meta_and_payload() {
    let gateway = Gateway::start(parent()).await;
    let line = "job dispatch -detach -meta a=1 -meta=b=x=y -idempotency-token t1 \
                -id-prefix-template nightly -priority=70 web -";
    let said = kafila(line).stdin("rows").at(&gateway.address).await;
    said.ended(0).printed(&[
        "Dispatched Job ID = ",
        CHILD,
        "Evaluation ID     = 1a2b3c4d",
    ]);
    let state = gateway.state();
    let request = &state.dispatch_requests[0];
    assert_eq!(
        (request.job_id.as_str(), request.namespace.as_str()),
        ("web", "default")
    );
    assert_eq!(request.payload, b"rows");
    assert_eq!(
        (request.meta["a"].as_str(), request.meta["b"].as_str()),
        ("1", "x=y")
    );
    assert_eq!(request.idempotency_token, "t1");
    assert_eq!(
        (request.id_prefix_template.as_str(), request.priority),
        ("nightly", 70)
    );
    assert_eq!(state.calls("GetEvaluation"), 0);
}

#[tokio::test]
async fn a_dispatch_is_followed_unless_its_token_was_used() {
    let gateway = Gateway::start(parent()).await;
    let said = kafila("job dispatch web").at(&gateway.address).await;
    said.ended(0)
        .printed(&["Monitoring evaluation \"1a2b3c4d\""]);
    let mut state = parent();
    state.dispatched.eval_id.clear();
    let gateway = Gateway::start(state).await;
    let said = kafila("job dispatch -idempotency-token t1 web")
        .at(&gateway.address)
        .await;
    assert_eq!(
        said.ended(0).stdout,
        format!("Dispatched Job ID = {CHILD}\n")
    );
}

#[tokio::test]
async fn an_invalid_dispatch_is_refused_before_a_request_is_sent() {
    let gateway = Gateway::start(FakeState::running()).await;
    for (line, problem) in [
        (
            "job dispatch web",
            "No parameterized job(s) with prefix or ID \"web\" found\n\"web\" is a service job, which \
             has no parameterized block.",
        ),
        (
            "job periodic force web",
            "No periodic job(s) with prefix or ID \"web\" found\n\"web\" is a service job, which \
             has no periodic block.",
        ),
        ("job dispatch -meta a web", "expected KEY=VALUE"),
        ("job dispatch web /no/such/file", "Error reading input data"),
        ("job scale web many", "\"many\" is not a valid count"),
    ] {
        let said = kafila(line).at(&gateway.address).await;
        let stderr = said.ended(1).stderr.clone();
        assert!(stderr.contains(problem), "{line}: {stderr}");
    }
    let state = gateway.state();
    assert!(state.dispatch_requests.is_empty() && state.scale_requests.is_empty());
}

#[tokio::test]
async fn scenario_033_the_only_group_need_not_be_named() {
    let mut state = FakeState::running();
    state.scaled = v1::ScaleJobResponse {
        eval_id: fixtures::EVAL.to_owned(),
        ..v1::ScaleJobResponse::default()
    };
    let gateway = Gateway::start(state).await;
    for line in [
        "job scale -detach web 3",
        "job scale -detach -check-index=17 web app 3",
    ] {
        let said = kafila(line).at(&gateway.address).await;
        let expected = format!("Job scale successful\nEvaluation ID: {}\n", fixtures::EVAL);
        assert_eq!(said.ended(0).stdout, expected);
    }
    let state = gateway.state();
    for (request, check_index) in state.scale_requests.iter().zip([0, 17]) {
        assert_eq!(
            (request.task_group.as_str(), request.count),
            ("app", Some(3))
        );
        assert_eq!(request.check_index, check_index);
    }
}

#[tokio::test]
async fn jobs_are_forced_and_evaluated() {
    let mut state = FakeState::running();
    state.stubs[0].periodic = true;
    state.forced = v1::ForcePeriodicJobResponse {
        child_job_id: "web/periodic-1795262400".to_owned(),
        eval_id: fixtures::EVAL.to_owned(),
        ..v1::ForcePeriodicJobResponse::default()
    };
    state.evaluated = v1::EvaluateJobResponse {
        eval_id: fixtures::EVAL.to_owned(),
        ..v1::EvaluateJobResponse::default()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("job periodic force -detach web")
        .at(&gateway.address)
        .await;
    let expected = format!(
        "Force periodic successful\nEvaluation ID: {}\n",
        fixtures::EVAL
    );
    assert_eq!(said.ended(0).stdout, expected);
    let line = "job eval -detach -force-reschedule web";
    let said = kafila(line).at(&gateway.address).await;
    let expected = format!("Created eval ID: {:?}\n", fixtures::EVAL);
    assert_eq!(said.ended(0).stdout, expected);
    let state = gateway.state();
    assert_eq!(state.force_requests[0].job_id, "web");
    assert!(state.evaluate_requests[0].force_reschedule);
}

#[tokio::test]
async fn allocations_deployments_and_scaling_events_of_a_job_are_listed() {
    let mut state = FakeState::running();
    let event = v1::ScalingEvent {
        time_ns: fixtures::NOW,
        count: Some(3),
        previous_count: 2,
        message: "busy".to_owned(),
        ..v1::ScalingEvent::default()
    };
    let group = v1::TaskGroupScaleStatus {
        events: vec![event],
        ..v1::TaskGroupScaleStatus::default()
    };
    state.scale_status.task_groups = [("app".to_owned(), group)].into();
    let gateway = Gateway::start(state).await;
    for (line, expected) in [
        (
            "job scaling-events web",
            &["Task Group", "PrevCount", "app"][..],
        ),
        ("job scaling-events -verbose web", &["Message", "busy"]),
        (
            "job scaling-events -json web",
            &["\"TaskGroup\": \"app\"", "\"Message\": \"busy\""],
        ),
        ("job allocs web", &["8a3f2c1e"]),
        ("job allocs -json web", &["\"ID\": \"8a3f2c1e-"]),
        ("job deployments web", &["5e6f7a8b"]),
        ("job deployments -latest web", &["5e6f7a8b", "Deployed"]),
    ] {
        let said = kafila(line).at(&gateway.address).await;
        said.ended(0).printed(expected);
    }
    let gateway = Gateway::start(FakeState {
        allocs: Vec::new(),
        deployments: Vec::new(),
        ..FakeState::running()
    })
    .await;
    for (line, expected) in [
        ("job scaling-events web", "No events found"),
        ("job allocs web", "No allocations placed"),
        ("job deployments web", "No deployments found"),
    ] {
        let said = kafila(line).at(&gateway.address).await;
        said.ended(0).printed(&[expected]);
    }
}

#[tokio::test]
async fn the_deployments_of_earlier_jobs_are_listed_on_request() {
    let mut state = FakeState::running();
    let former = v1::Deployment {
        id: format!("9f8e7d6c{}", &fixtures::DEPLOYMENT[8..]),
        job_create_index: fixtures::deployment().job_create_index - 5,
        create_index: 6,
        ..fixtures::deployment()
    };
    state.deployments.push(former);
    let gateway = Gateway::start(state).await;
    let said = kafila("job deployments web").at(&gateway.address).await;
    assert!(!said.ended(0).stdout.contains("9f8e7d6c"), "{said:?}");
    let said = kafila("job deployments -all web")
        .at(&gateway.address)
        .await;
    // The newest first.
    said.ended(0).printed(&["5e6f7a8b", "9f8e7d6c"]);
}

#[tokio::test]
async fn the_allocations_of_a_job_are_paged() {
    let mut state = FakeState::running();
    let mut second = fixtures::alloc();
    second.id = format!("9b4a3d2f{}", &second.id[8..]);
    state.allocs = vec![fixtures::alloc(), second];
    let gateway = Gateway::start(state).await;
    let said = kafila("job allocs -per-page=1 web")
        .at(&gateway.address)
        .await;
    said.ended(0)
        .printed(&["8a3f2c1e"])
        .complained(&["kafila job allocs -per-page=1 web -page-token=1\n"]);
    let said = kafila("job allocs -page-token=1 web")
        .at(&gateway.address)
        .await;
    said.ended(0).printed(&["9b4a3d2f"]);
    assert!(!said.stdout.contains("8a3f2c1e"), "{}", said.stdout);
}

#[tokio::test]
async fn scenario_023_a_periodic_job_is_registered_and_shows_its_next_launch() {
    let mut state = FakeState::running();
    state.registered = [Ok(v1::RegisterJobResponse {
        next_periodic_launch_ns: fixtures::NOW + 3_600 * fixtures::SECOND,
        job_modify_index: 17,
        ..v1::RegisterJobResponse::default()
    })]
    .into();
    let gateway = Gateway::start(state).await;
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/periodic.hcl");
    let said = kafila("job run").arg(example).at(&gateway.address).await;
    said.ended(0).printed(&[
        "Job registration successful\n",
        "Approximate next launch time: 2026-11-21T13:00:00Z",
    ]);
    assert!(!said.stdout.contains("Evaluation ID"), "{}", said.stdout);
}

#[tokio::test]
async fn a_parent_shows_its_children() {
    let mut state = FakeState::running();
    state.stubs[0].periodic = true;
    let job = state.jobs.last_mut().unwrap();
    job.periodic = Some(v1::Periodic::default());
    state.next_launch_ns = fixtures::NOW;
    let child = |id: &str, parent: &str| v1::JobStub {
        id: id.to_owned(),
        parent_id: parent.to_owned(),
        status: "dead".to_owned(),
        ..fixtures::stub()
    };
    state.stubs.push(child("web/periodic-1", "web"));
    // Only named like one.
    state.stubs.push(child("web/periodic-other", ""));
    let gateway = Gateway::start(state).await;
    let said = kafila("job status web").at(&gateway.address).await;
    said.ended(0).printed(&[
        "Periodic             = true",
        "Next Periodic Launch = 2026-11-21T12:00:00Z",
        "Children Job Summary",
        "Previously Launched Jobs",
        "web/periodic-1  dead",
    ]);
    assert!(!said.stdout.contains("periodic-other"), "{}", said.stdout);
    gateway.state().allocs.clear();
    let said = kafila("logs -job web").at(&gateway.address).await;
    said.ended(1)
        .complained(&["'kafila job status web' lists its children"]);
}

#[tokio::test]
async fn a_job_that_is_stopped_is_not_started_by_scaling_or_evaluating_it_and_that_is_said() {
    for line in ["job scale -detach web 3", "job eval -detach web"] {
        let running = Gateway::start(FakeState::running()).await;
        let said = kafila(line).at(&running.address).await;
        assert_eq!(said.ended(0).stderr, "", "{line}");
        let mut state = FakeState::running();
        state.stubs[0].stop = true;
        let stopped = Gateway::start(state).await;
        let said = kafila(line).at(&stopped.address).await;
        said.ended(0)
            .complained(&["job \"web\" is stopped. Start it with 'kafila job run FILE'"]);
    }
}

#[tokio::test]
async fn the_count_of_a_periodic_job_applies_from_its_next_launch() {
    let mut state = FakeState::running();
    state.stubs[0].periodic = true;
    let gateway = Gateway::start(state).await;
    let said = kafila("job scale web app 3").at(&gateway.address).await;
    said.ended(0).printed(&[
        "Job scale successful\n",
        "The count applies from the next launch.\n",
    ]);
}

#[tokio::test]
async fn a_count_below_none_is_refused_as_one() {
    for (line, count) in [
        ("job scale web -1", "-1"),
        ("job scale web app -12", "-12"),
        ("job scale web +2", "+2"),
    ] {
        let said = kafila(line).at(crate::command::UNREACHABLE).await;
        said.ended(1).complained(&[&format!(
            "{count:?} is not a valid count: expected a whole number"
        )]);
    }
}

/// In a script, the prefix of another job's ID must not change that job.
#[tokio::test]
async fn a_change_by_prefix_names_the_job_and_needs_a_confirmation() {
    let mut state = FakeState::running();
    state.evaluated.eval_id = fixtures::EVAL.to_owned();
    state.scaled.eval_id = fixtures::EVAL.to_owned();
    let gateway = Gateway::start(state).await;
    for (line, verb) in [
        ("job eval -detach we", "evaluate"),
        ("job scale -detach we 3", "scale"),
    ] {
        let said = kafila(line).at(&gateway.address).await;
        let question = format!("Are you sure you want to {verb} job \"web\"?");
        said.ended(1).printed(&[&question]);
        let refused = kafila(line).stdin("n\n").at(&gateway.address).await;
        refused.ended(0).printed(&["Cancelling job"]);
    }
    assert!(gateway.state().evaluate_requests.is_empty());
    assert!(gateway.state().scale_requests.is_empty());
    for line in ["job eval -detach -yes we", "job scale -detach -yes we 3"] {
        kafila(line).at(&gateway.address).await.ended(0);
    }
    let said = kafila("job eval -detach we").stdin("y\n");
    said.at(&gateway.address).await.ended(0);
    assert_eq!(gateway.state().evaluate_requests.len(), 2);
    assert_eq!(gateway.state().scale_requests.len(), 1);
}
