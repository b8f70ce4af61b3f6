//! `kafila alloc exec`

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn scenario_029_the_command_gets_its_arguments_and_input_and_its_exit_code_is_the_commands() {
    let gateway = Gateway::start(FakeState::running()).await;
    let id = fixtures::alloc().id;
    let task = fixtures::alloc().task_states.into_keys().min().unwrap();
    let line = format!("alloc exec -task {task} {} sh -c -detach", &id[..8]);
    let said = kafila(&line).stdin("typed\n").at(&gateway.address).await;
    let said = said.ended(3);
    assert_eq!(
        (said.stdout.as_str(), said.stderr.as_str()),
        ("typed\n", "said\n")
    );
    let line = format!("exec -i=false -task={task} {id} ls");
    kafila(&line).at(&gateway.address).await.ended(3);
    let state = gateway.state();
    let asked: Vec<_> = state
        .exec_starts
        .iter()
        .map(|start| {
            (
                start.alloc_id.as_str(),
                start.task.as_str(),
                start.command.join(" "),
            )
        })
        .collect();
    assert_eq!(
        asked,
        [
            (id.as_str(), task.as_str(), "sh -c -detach".to_owned()),
            (id.as_str(), task.as_str(), "ls".to_owned())
        ]
    );
    assert!(
        state
            .exec_starts
            .iter()
            .all(|start| start.terminal.is_none())
    );
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_before_the_gateway_is_asked_to() {
    let gateway = Gateway::start(FakeState::running()).await;
    let id = fixtures::alloc().id;
    for (line, why) in [
        (format!("alloc exec {id}"), "A command is required"),
        (
            format!("alloc exec -i=false -t {id} sh"),
            "-i must be enabled",
        ),
        (format!("alloc exec -t {id} sh"), "not a terminal"),
        (format!("alloc exec -e ab {id} sh"), "one ASCII character"),
        (format!("alloc exec -task nope {id} sh"), "Its tasks are"),
    ] {
        let said = kafila(&line).at(&gateway.address).await;
        let stderr = &said.ended(1).stderr;
        assert!(stderr.contains(why), "{line}: {stderr}");
    }
    let said = kafila("alloc exec").arg("").arg("sh");
    let said = said.at(&gateway.address).await;
    let stderr = &said.ended(1).stderr;
    assert!(stderr.contains("ID is empty"), "{stderr}");
    assert!(gateway.state().exec_starts.is_empty());
}
