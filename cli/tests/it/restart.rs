//! `kafila alloc restart|stop`, `kafila job restart` and `kafila job run -force`

use tonic::Status;

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

/// Two running allocations of one job.
fn two() -> FakeState {
    let mut state = FakeState::running();
    let mut second = fixtures::alloc();
    second.id = "22223333-4444-5555-6666-777788889999".to_owned();
    state.allocs = vec![fixtures::alloc(), second];
    state
}

#[tokio::test]
async fn an_allocation_is_restarted_whole_or_one_task_of_it() {
    let gateway = Gateway::start(FakeState::running()).await;
    let id = fixtures::alloc().id;
    let task = fixtures::alloc().task_states.into_keys().min().unwrap();
    for line in [
        format!("alloc restart {}", &id[..8]),
        format!("alloc restart {id} {task}"),
        format!("alloc restart -task {task} {id}"),
        format!("alloc restart -all-tasks {id}"),
    ] {
        let said = kafila(&line).at(&gateway.address).await;
        said.ended(0).printed(&["Restarted task", &task, &id[..8]]);
    }
    let state = gateway.state();
    let asked = state.restart_requests.iter();
    let asked: Vec<(&str, bool)> = asked
        .map(|request| (request.task.as_str(), request.all_tasks))
        .collect();
    let one = (task.as_str(), false);
    assert_eq!(asked, [("", false), one, one, ("", true)]);
}

#[tokio::test]
async fn a_refused_restart_is_not_repeated() {
    let mut state = FakeState::running();
    let unknown = "node n1 did not answer: the tasks may have been restarted";
    state.restart_refusals = [Status::unknown(unknown)].into();
    let gateway = Gateway::start(state).await;
    let line = format!("alloc restart {}", fixtures::alloc().id);
    let said = kafila(&line).at(&gateway.address).await;
    let stderr = &said.ended(1).stderr;
    assert!(stderr.contains("may have been restarted"), "{stderr}");
    assert_eq!(gateway.state().restart_requests.len(), 1);
}

#[tokio::test]
async fn a_stop_of_an_allocation_prints_its_evaluation() {
    let gateway = Gateway::start(FakeState::running()).await;
    let line = format!("alloc stop -detach {}", fixtures::alloc().id);
    let said = kafila(&line).at(&gateway.address).await;
    let expected = format!("Evaluation ID: {}\n", fixtures::EVAL);
    assert_eq!(said.ended(0).stdout, expected);
    assert!(!gateway.state().stop_requests[0].request_id.is_empty());
}

#[tokio::test]
async fn stops_skip_the_shutdown_delay_on_request() {
    for flag in ["", " -no-shutdown-delay"] {
        let gateway = Gateway::start(FakeState::running()).await;
        let address = &gateway.address;
        let line = format!("job stop -detach{flag} web");
        kafila(&line).at(address).await.ended(0);
        let line = format!("job restart -reschedule{flag} web");
        kafila(&line).at(address).await.ended(0);
        let line = format!("alloc stop -detach{flag} {}", fixtures::alloc().id);
        kafila(&line).at(address).await.ended(0);
        let state = gateway.state();
        let stops = state.stop_requests.iter();
        let skipped: Vec<bool> = stops.map(|stop| stop.no_shutdown_delay).collect();
        let is_set = !flag.is_empty();
        assert_eq!(skipped, [is_set, is_set]);
        assert_eq!(state.deregister_requests[0].no_shutdown_delay, is_set);
    }
}

#[tokio::test]
async fn a_job_is_restarted_in_batches() {
    let gateway = Gateway::start(two()).await;
    let said = kafila("job restart web").at(&gateway.address).await;
    let first = fixtures::alloc().id;
    said.ended(0).printed(&[
        &format!("==> Restarting allocation {}", &first[..8]),
        "restarted ",
        "==> Restarting allocation 22223333",
        "restarted ",
        "Job restarted successfully!",
    ]);
    assert_eq!(gateway.state().restart_requests.len(), 2);
    let said = kafila("job restart -batch-size=100% -group nothing web");
    let stderr = said.at(&gateway.address).await.ended(1).stderr.clone();
    assert!(
        stderr.contains("No running allocation of group"),
        "{stderr}"
    );
}

#[tokio::test]
async fn a_failed_restart_ends_the_job_restart_before_the_next_batch() {
    let mut state = two();
    state.restart_refusals = [Status::failed_precondition("node n1: nothing runs")].into();
    let gateway = Gateway::start(state).await;
    let said = kafila("job restart web").at(&gateway.address).await;
    let stderr = &said.ended(1).stderr;
    for part in ["nothing runs", "1 allocations were not restarted"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    assert_eq!(gateway.state().restart_requests.len(), 1);
}

#[tokio::test]
async fn a_reschedule_waits_for_the_replacement_and_is_for_services() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("job restart -reschedule web")
        .at(&gateway.address)
        .await;
    said.ended(0).printed(&["Stopping", "replaced by 99998888"]);
    assert!(gateway.state().restart_requests.is_empty());
    let mut state = FakeState::running();
    state.stubs[0].r#type = "batch".to_owned();
    let gateway = Gateway::start(state).await;
    let said = kafila("job restart -reschedule web")
        .at(&gateway.address)
        .await;
    let stderr = &said.ended(1).stderr;
    assert!(stderr.contains("not allowed to be rescheduled"), "{stderr}");
}
