//! `kafila job run`

use std::time::Duration;

use model::{FieldError, FieldErrors};
use proto::v1;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tonic::Status;

use crate::command::{TIMEOUT, UNREACHABLE, kafila, said};
use crate::fixtures;
use crate::gateway::Gateway;
use crate::job_file::{File, WEB};
use crate::state::{FakeState, registered};

fn pending() -> v1::Evaluation {
    v1::Evaluation {
        status: "pending".to_owned(),
        deployment_id: String::new(),
        modify_index: 18,
        ..fixtures::eval()
    }
}

/// A state in which the job comes up in a few steps.
fn coming_up() -> FakeState {
    FakeState {
        evals: vec![pending()],
        next_evals: [pending(), fixtures::eval()].into(),
        next_deployments: [fixtures::running_deployment(), fixtures::deployment()].into(),
        ..FakeState::running()
    }
}

#[tokio::test]
async fn scenario_021_a_job_is_followed_until_its_deployment_is_successful() {
    let gateway = Gateway::start(coming_up()).await;
    let file = File::web();
    let said = kafila("job run").arg(&file.path).at(&gateway.address).await;
    said.ended(0).printed(&[
        "==> ",
        "Monitoring evaluation \"1a2b3c4d\"\n",
        "    ",
        "Evaluation triggered by job \"web\"\n",
        "Allocation \"8a3f2c1e\" created: node \"4d2ba53b\", group \"app\"\n",
        "Evaluation within deployment: \"5e6f7a8b\"\n",
        "Evaluation status changed: \"pending\" -> \"complete\"\n",
        "==> ",
        "Evaluation \"1a2b3c4d\" finished with status \"complete\"\n",
        "==> ",
        "Monitoring deployment \"5e6f7a8b\"\n",
        "    Status      = running\n",
        "    app         2        2       1        0          2026-11-21T12:09:00Z\n",
        "    Status      = successful\n",
        "  ✓ Deployment \"5e6f7a8b\" successful\n",
    ]);
    assert_eq!(said.stderr, "");
    assert!(!said.stdout.contains('\x1b'), "{}", said.stdout);
    let state = gateway.state();
    let request = &state.register_requests[0];
    assert_eq!(request.check_index, None);
    assert!(!request.request_id.is_empty());
    let job = request.job.clone().unwrap();
    assert_eq!((job.id(), job.namespace()), ("web", "default"));
    assert_eq!(
        job.task_groups[0].tasks[0]
            .resources
            .as_ref()
            .unwrap()
            .memory_mib(),
        256
    );
}

#[tokio::test]
async fn every_call_has_a_deadline_and_waits_instead_of_asking_again_and_again() {
    let gateway = Gateway::start(coming_up()).await;
    let file = File::web();
    kafila("job run")
        .arg(&file.path)
        .at(&gateway.address)
        .await
        .ended(0);
    let state = gateway.state();
    for seen in &state.seen {
        assert!(seen.has_deadline, "{seen:?}");
    }
    let asked = |method: &str| -> Vec<u64> {
        let calls = state.seen.iter().filter(|seen| seen.method == method);
        calls.map(|seen| seen.options.min_index).collect()
    };
    assert_eq!(asked("GetEvaluation"), [0, 18]);
    assert_eq!(asked("GetDeployment"), [0, 22]);
    let waits = state.seen.iter().filter(|seen| seen.options.min_index > 0);
    assert!(
        waits
            .clone()
            .all(|seen| seen.options.wait.is_some_and(|wait| wait.seconds >= 1))
    );
}

#[tokio::test]
async fn detached_it_returns_with_the_whole_evaluation_id() {
    let gateway = Gateway::start(FakeState::running()).await;
    let file = File::web();
    for line in ["job run -detach", "job run --detach", "run -detach=true"] {
        let said = kafila(line).arg(&file.path).at(&gateway.address).await;
        let expected = format!(
            "Job registration successful\nEvaluation ID: {}\n",
            fixtures::EVAL
        );
        assert_eq!(said.ended(0).stdout, expected);
    }
    assert_eq!(gateway.state().calls("GetEvaluation"), 0);
}

#[tokio::test]
async fn scenario_022_a_batch_job_that_does_not_fit_ends_with_2_and_says_why() {
    let state = FakeState {
        evals: vec![fixtures::failed_eval()],
        allocs: vec![],
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let file = File::web();
    let said = kafila("job run").arg(&file.path).at(&gateway.address).await;
    said.ended(2).printed(&[
        "but failed to place all allocations:\n",
        "Task Group \"app\" (failed to place 2 allocations):\n",
        "      * Resources exhausted on 2 nodes\n",
        "      * Dimension \"memory\" exhausted on 2 nodes\n",
        "Ask for less memory",
        "Evaluation \"2b3c4d5e\" waiting for additional capacity to place remainder\n",
    ]);
}

#[tokio::test]
async fn a_deployment_that_fails_ends_with_1() {
    let failed = v1::Deployment {
        status: "failed".to_owned(),
        status_description: "Failed due to progress deadline".to_owned(),
        ..fixtures::running_deployment()
    };
    let state = FakeState {
        next_deployments: [failed].into(),
        ..coming_up()
    };
    let gateway = Gateway::start(state).await;
    let file = File::web();
    let said = kafila("job run").arg(&file.path).at(&gateway.address).await;
    said.ended(1).printed(&[
        "Description = Failed due to progress deadline\n",
        "  ! Deployment \"5e6f7a8b\" failed\n",
    ]);
}

#[tokio::test]
async fn an_unhealthy_allocation_is_explained_with_the_last_event_of_its_task() {
    let mut fails = fixtures::running_deployment();
    for group in fails.task_groups.values_mut() {
        group.unhealthy_allocs = 1;
    }
    let failed = v1::Deployment {
        status: "failed".to_owned(),
        modify_index: 30,
        ..fails.clone()
    };
    let mut state = FakeState {
        next_deployments: [fails, failed].into(),
        ..coming_up()
    };
    state.allocs[1] = fixtures::never_started();
    let gateway = Gateway::start(state).await;
    let file = File::web();
    let said = kafila("job run").arg(&file.path).at(&gateway.address).await;
    let why = "Allocation \"8a3f2c1e\" is unhealthy: task \"server\": Driver Failure: no such \
               command; see 'kafila alloc status 8a3f2c1e'\n";
    said.ended(1)
        .printed(&["Monitoring deployment", why, "failed"]);
    assert_eq!(
        said.stdout.matches("is unhealthy").count(),
        1,
        "{}",
        said.stdout
    );
}

#[tokio::test]
async fn scenario_024_a_job_that_was_changed_meanwhile_is_not_updated() {
    let refused = Status::aborted("Enforcing job modify index 0: job already exists");
    let state = FakeState {
        registered: [Err(refused)].into(),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let file = File::web();
    let said = kafila("job run -check-index 0")
        .arg(&file.path)
        .at(&gateway.address)
        .await;
    said.ended(1).complained(&[
        "Enforcing job modify index 0: job already exists\n",
        "Job not updated\n",
        "kafila job inspect web",
    ]);
    assert_eq!(gateway.state().register_requests[0].check_index, Some(0));
    let missing = Status::aborted("Enforcing job modify index 55: job does not exist");
    gateway.state().registered = [Err(missing)].into();
    let said = kafila("job run -check-index 55")
        .arg(&file.path)
        .at(&gateway.address)
        .await;
    said.ended(1).complained(&[
        "Job not updated\n",
        "-check-index=0 registers the job \"web\"",
    ]);
}

#[tokio::test]
async fn errors_of_the_gateway_are_shown_at_their_line() {
    let mut errors = FieldErrors::default();
    let field = "group[\"app\"].task[\"server\"].resources.memory";
    errors
        .0
        .push(FieldError::new(field, "256 is less than the least, 10000"));
    let state = FakeState {
        registered: [Err(proto::status::invalid(errors))].into(),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let file = File::web();
    let said = kafila("job run").arg(&file.path).at(&gateway.address).await;
    said.ended(1).complained(&[
        "Error submitting job: 1 error occurred:\n",
        "web.hcl:13,18-21: ",
        "256 is less than the least",
        "\n13 |         memory = 256\n",
        "^^^\n",
    ]);
}

#[tokio::test]
async fn warnings_go_to_standard_error() {
    let warned = v1::RegisterJobResponse {
        warnings: vec!["update.max_parallel is more than count".to_owned()],
        ..registered()
    };
    let state = FakeState {
        registered: [Ok(warned)].into(),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let file = File::web();
    let said = kafila("job run -detach")
        .arg(&file.path)
        .at(&gateway.address)
        .await;
    said.ended(0)
        .complained(&["Job Warnings:\n1 warning:\n\n* update.max_parallel is more"]);
    assert!(
        said.stdout.starts_with("Job registration successful\n"),
        "{}",
        said.stdout
    );
}

#[tokio::test]
async fn output_prints_json_that_runs_and_sends_nothing() {
    let file = File::web();
    let said = kafila("job run -output")
        .arg(&file.path)
        .at(UNREACHABLE)
        .await;
    let json = said.json();
    assert_eq!(json["Job"]["ID"], "web");
    assert_eq!(
        json["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]["command"],
        "/bin/sleep"
    );
    assert!(
        said.stdout.starts_with("{\n    \"Job\": {\n"),
        "{}",
        said.stdout
    );

    let gateway = Gateway::start(FakeState::running()).await;
    let line = "job run -json -detach -";
    kafila(line)
        .stdin(&said.stdout)
        .at(&gateway.address)
        .await
        .ended(0);
    let from_hcl = kafila("job run -detach")
        .arg(&file.path)
        .at(&gateway.address)
        .await;
    from_hcl.ended(0);
    let state = gateway.state();
    assert_eq!(
        state.register_requests[0].job,
        state.register_requests[1].job
    );
}

#[tokio::test]
async fn a_job_file_may_come_from_standard_input_with_variables() {
    let text = WEB.replace("count = 2", "count = var.count");
    let text = format!("variable \"count\" {{\n  type = number\n}}\n{text}");
    let gateway = Gateway::start(FakeState::running()).await;
    let count = |gateway: &Gateway| {
        let state = gateway.state();
        let job = state.register_requests.last().unwrap().job.clone().unwrap();
        job.task_groups[0].count()
    };
    let run = |line: &str| kafila(line).stdin(&text);
    run("job run -detach -var count=3 -")
        .at(&gateway.address)
        .await
        .ended(0);
    assert_eq!(count(&gateway), 3);
    let from_environment = run("job run -detach -").env("NOMAD_VAR_count", "4");
    from_environment.at(&gateway.address).await.ended(0);
    assert_eq!(count(&gateway), 4);
    let file = File::new("prod.vars", "count = 5\n");
    let from_file = run("job run -detach -var-file=prod.vars -").env("NOMAD_VAR_count", "4");
    let from_file = from_file.current_dir(file.directory.path());
    from_file.at(&gateway.address).await.ended(0);
    assert_eq!(count(&gateway), 5);
    run("job run -detach -")
        .at(&gateway.address)
        .await
        .ended(1)
        .complained(&["count"]);
}

#[tokio::test]
async fn scenario_014_a_malformed_file_is_shown_with_a_caret() {
    let file = File::new("web.hcl", &WEB.replace("memory = 256", "memroy = 256"));
    let said = kafila("job run").arg(&file.path).at(UNREACHABLE).await;
    said.ended(1).complained(&[
        "Error getting job struct: Error parsing job file from ",
        "web.hcl:\n",
        "web.hcl:13,9-15: Unsupported argument; ",
        "memroy",
        "\n13 |         memroy = 256\n",
        "   |         ^^^^^^",
    ]);
    assert_eq!(said.stdout, "");
}

#[tokio::test]
async fn a_file_that_is_not_there_is_named() {
    let said = kafila("job run nowhere.hcl").at(UNREACHABLE).await;
    said.ended(1)
        .complained(&["Error getting jobfile from \"nowhere.hcl\": No such file"]);
    let said = kafila("job run -var-file=nowhere.vars -")
        .stdin(WEB)
        .at(UNREACHABLE)
        .await;
    said.ended(1)
        .complained(&["variable file \"nowhere.vars\": No such file"]);
}

#[tokio::test]
async fn variables_that_make_no_sense_are_refused() {
    let file = File::web();
    let said = kafila("job run -var count")
        .arg(&file.path)
        .at(UNREACHABLE)
        .await;
    said.ended(1)
        .complained(&["Invalid -var option \"count\"", "-var=\"key=value\""]);
    let said = kafila("job run -var nothing=1")
        .arg(&file.path)
        .at(UNREACHABLE)
        .await;
    said.ended(1).complained(&["nothing"]);
    let said = kafila("job run -json -var a=1 -")
        .stdin("{}")
        .at(UNREACHABLE)
        .await;
    said.ended(1)
        .complained(&["cannot use variables with JSON files"]);
}

#[tokio::test]
async fn the_namespace_is_the_files_own_or_else_the_flags_which_must_not_differ() {
    let gateway = Gateway::start(FakeState::running()).await;
    let namespace = |gateway: &Gateway| {
        let state = gateway.state();
        let job = state.register_requests.last().unwrap().job.clone().unwrap();
        job.namespace().to_owned()
    };
    let line = "job run -detach -namespace ops -";
    kafila(line).stdin(WEB).at(&gateway.address).await.ended(0);
    assert_eq!(namespace(&gateway), "ops");
    let own = WEB.replace("group \"app\"", "namespace = \"own\"\n  group \"app\"");
    let from_environment = kafila("job run -detach -").env("KAFILA_NAMESPACE", "ops");
    let said = from_environment.stdin(&own).at(&gateway.address).await;
    said.ended(0);
    assert_eq!(namespace(&gateway), "own");
    let asked = gateway.state().register_requests.len();
    for command in ["job run", "job plan", "job validate"] {
        let said = kafila(&format!("{command} -namespace ops -"))
            .stdin(&own)
            .at(&gateway.address)
            .await;
        let exit = if command == "job plan" { 255 } else { 1 };
        said.ended(exit).complained(&[
            "-namespace=ops",
            "namespace = \"own\"",
            "Leave out the flag",
        ]);
        let said = kafila(&format!("{command} -namespace * -"))
            .stdin(WEB)
            .at(&gateway.address)
            .await;
        said.ended(exit).complained(&["a job has one"]);
    }
    assert_eq!(gateway.state().register_requests.len(), asked);
}

#[tokio::test]
async fn a_busy_gateway_is_asked_again_when_it_says_so() {
    let busy = proto::status::exhausted("too many evaluations", Duration::from_millis(10));
    let state = FakeState {
        registered: [Err(busy), Ok(registered())].into(),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let file = File::web();
    kafila("job run -detach")
        .arg(&file.path)
        .at(&gateway.address)
        .await
        .ended(0);
    let state = gateway.state();
    let ids: Vec<&str> = state
        .register_requests
        .iter()
        .map(|it| it.request_id.as_str())
        .collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1], "a retry is recognisable");
}

#[tokio::test]
async fn an_answer_that_never_came_is_not_called_a_failure() {
    let state = FakeState {
        registered: [Err(Status::deadline_exceeded("too slow"))].into(),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let file = File::web();
    let said = kafila("job run").arg(&file.path).at(&gateway.address).await;
    said.ended(1)
        .complained(&["may have been stored", "kafila job status web"]);
}

#[tokio::test]
async fn a_restart_of_the_gateway_is_noted_and_survived() {
    let state = FakeState {
        evals: vec![pending()],
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let file = File::web();
    let mut child = kafila("job run").arg(&file.path).start(&gateway.address);
    gateway
        .wait_for("the evaluation is watched", |state| {
            state.calls("GetEvaluation") > 0
        })
        .await;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut printed = Vec::new();
    let lost = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            printed.push(line);
            if printed
                .last()
                .unwrap()
                .contains("Lost the gateway at http://127.0.0.2:")
            {
                return;
            }
        }
        panic!("it ended without a word: {printed:?}");
    };
    let gateway = gateway.restart(lost).await;
    gateway.state().evals = vec![fixtures::eval()];
    let ended = tokio::time::timeout(TIMEOUT, child.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.code(), Some(0));
    let mut rest = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        rest.push(line);
    }
    let rest = rest.join("\n");
    assert!(rest.contains("answers again"), "{rest}");
    assert!(
        rest.contains("Deployment \"5e6f7a8b\" successful"),
        "{rest}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_detaches_and_says_that_the_job_goes_on() {
    let state = FakeState {
        evals: vec![pending()],
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let file = File::web();
    let child = kafila("job run").arg(&file.path).start(&gateway.address);
    gateway
        .wait_for("the evaluation is watched", |state| {
            state.calls("GetEvaluation") > 1
        })
        .await;
    let pid = child.id().unwrap().to_string();
    let status = tokio::process::Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .await
        .unwrap();
    assert!(status.success());
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let said = said(output);
    said.ended(130).complained(&[
        "Detached. The job \"web\" continues",
        "kafila job status web",
    ]);
    assert_eq!(gateway.state().calls("Deregister"), 0);
}
