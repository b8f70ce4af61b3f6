//! Tasks of a plugin that works.

use std::time::Duration;

use driver_plugin_test_kit::control::{NO_STREAMS, START_FAILS};
use model::ExitResult;
use serde_json::json;
use task_drivers::{
    Driver, DriverError, ExecCommand, ExecInput, ExecIo, ExecOutput, StartError, TaskId,
};
use test_kit::wait_for;
use tokio::sync::mpsc;

use crate::fixture::{Fixture, LIMIT, object, problem, wait};

fn code(code: i32) -> ExitResult {
    ExitResult {
        code,
        ..ExitResult::default()
    }
}

#[tokio::test]
async fn a_task_runs_prints_and_ends() {
    let fixture = Fixture::new();
    let (plugins, driver) = fixture.driver().await;
    let mut task = fixture.task(1, "echo $GREETING $FROM_BLOCK; echo bad >&2; pwd; exit 3");
    task.env = [("GREETING".to_owned(), "hello".to_owned())].into();
    task.config
        .insert("vars".to_owned(), json!({"FROM_BLOCK": "world"}));
    driver.start(task.clone()).await.unwrap();
    assert_eq!(wait(driver.as_ref(), &task.id).await, code(3));
    let root = task.dirs.as_ref().unwrap().root.display().to_string();
    let output = fixture.output(&task.id, "stdout");
    assert_eq!(
        output,
        format!("hello world\n{root}\n"),
        "all of it, when the wait returns"
    );
    assert_eq!(fixture.output(&task.id, "stderr"), "bad\n");
    assert_eq!(
        wait(driver.as_ref(), &task.id).await,
        code(3),
        "as often as asked"
    );
    assert_eq!(driver.leftovers(), [task.id.clone()]);
    driver.forget(&task.id).await.unwrap();
    driver.forget(&task.id).await.unwrap();
    assert!(driver.leftovers().is_empty());
    let waited = driver.wait(&task.id, &mpsc::channel(1).0).await;
    assert!(
        matches!(waited, Err(DriverError::UnknownTask { .. })),
        "{waited:?}"
    );
    plugins.close().await;
    assert!(fixture.copier_pids().is_empty() && fixture.plugin_pids().is_empty());
}

#[tokio::test]
async fn a_repeated_start_starts_nothing() {
    let fixture = Fixture::new();
    let (_plugins, driver) = fixture.driver().await;
    let task = fixture.task(1, "echo started; sleep 100");
    driver.start(task.clone()).await.unwrap();
    driver.start(task.clone()).await.unwrap();
    fixture.said(&task.id, "started").await;
    assert_eq!(
        (fixture.calls("StartTask"), fixture.task_pids().len()),
        (1, 1)
    );
}

#[tokio::test]
async fn a_task_is_stopped_by_its_signal_or_by_force() {
    let fixture = Fixture::new();
    let (_plugins, driver) = fixture.driver().await;
    let gentle = fixture.task(
        1,
        "trap 'exit 7' USR1; echo ready; while :; do sleep 0.05; done",
    );
    let stubborn = fixture.task(2, "trap : TERM; echo ready; while :; do sleep 0.05; done");
    for (task, signal, grace, want) in [
        (gentle, "SIGUSR1", LIMIT, 7),
        (stubborn, "", Duration::from_millis(200), 137),
    ] {
        driver.start(task.clone()).await.unwrap();
        fixture.said(&task.id, "ready").await;
        driver.stop(&task.id, signal, grace).await.unwrap();
        assert_eq!(wait(driver.as_ref(), &task.id).await.code, want);
        driver.stop(&task.id, signal, grace).await.unwrap();
        driver.forget(&task.id).await.unwrap();
    }
    assert!(fixture.task_pids().is_empty());
}

#[tokio::test]
async fn signals_commands_and_usage_reach_a_task() {
    let fixture = Fixture::new();
    let (_plugins, driver) = fixture.driver().await;
    let task = fixture.task(
        1,
        "trap 'echo hup' HUP; echo ready; while :; do sleep 0.05; done",
    );
    driver.start(task.clone()).await.unwrap();
    let id = task.id.clone();
    let waiting = {
        let (driver, id) = (driver.clone(), id.clone());
        tokio::spawn(async move { wait(driver.as_ref(), &id).await })
    };
    fixture.said(&id, "ready").await;
    driver.signal(&id, "SIGHUP").await.unwrap();
    fixture.said(&id, "hup").await;
    let refused = driver.signal(&id, "SIGNONSENSE").await.unwrap_err();
    assert!(refused.to_string().contains("is no signal"), "{refused}");

    let usage = wait_for("its usage", LIMIT, async || driver.usage(&id)).await;
    assert_eq!(usage.memory, Some(4_096));

    let input = [
        ExecInput::Stdin(b"one\ntwo\n".to_vec()),
        ExecInput::EndOfStdin,
    ];
    let (exit, output) = exec(driver.as_ref(), &id, "cat; exit 5", &input).await;
    assert_eq!((exit.unwrap(), output.as_str()), (5, "one\ntwo\n"));
    fixture.switch(NO_STREAMS, Some(""));
    let (exit, output) = exec(driver.as_ref(), &id, "echo plain; exit 6", &[]).await;
    assert_eq!((exit.unwrap(), output.as_str()), (6, "plain\n"));
    driver.stop(&id, "SIGKILL", Duration::ZERO).await.unwrap();
    assert_eq!(waiting.await.unwrap().code, 137);
    let (exit, _) = exec(driver.as_ref(), &TaskId { attempt: 9, ..id }, "true", &[]).await;
    assert!(
        matches!(exit, Err(DriverError::UnknownTask { .. })),
        "{exit:?}"
    );
}

async fn exec(
    driver: &dyn Driver,
    id: &TaskId,
    script: &str,
    input: &[ExecInput],
) -> (Result<i32, DriverError>, String) {
    let line = ["/bin/sh", "-c", script].map(str::to_owned);
    let command = ExecCommand {
        line: line.into(),
        terminal: None,
    };
    let (sender, receiver) = mpsc::channel(8);
    let (output, mut outputs) = mpsc::channel(8);
    for part in input {
        sender.send(part.clone()).await.unwrap();
    }
    let io = ExecIo {
        input: receiver,
        output,
    };
    let exit = tokio::time::timeout(LIMIT, driver.exec(id, command, io))
        .await
        .unwrap();
    let mut text = Vec::new();
    while let Ok(part) = outputs.try_recv() {
        let (ExecOutput::Stdout(data) | ExecOutput::Stderr(data)) = part;
        text.extend(data);
    }
    (exit, String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn a_failed_start_says_whether_it_can_be_repeated_and_leaves_nothing() {
    let fixture = Fixture::new();
    let (_plugins, driver) = fixture.driver().await;
    for (reason, recoverable) in [("no image, retry", true), ("no such image", false)] {
        fixture.switch(START_FAILS, Some(reason));
        let failure = driver.start(fixture.task(1, "true")).await.unwrap_err();
        assert_eq!(problem(failure), (reason.to_owned(), recoverable));
        assert!(driver.leftovers().is_empty());
    }
    fixture.switch(START_FAILS, None);
    let mut task = fixture.task(1, "true");
    task.config = object(json!({"comand": "/bin/true"}));
    let failure = driver.start(task).await.unwrap_err();
    let want = "config of driver stand-in: comand: unknown option: remove it, or write one of: \
                args, command, vars";
    assert_eq!(failure, StartError::Config(want.to_owned()));
}

#[tokio::test]
async fn a_task_that_starts_after_its_stop_does_not_run_on() {
    use driver_plugin_test_kit::control::{SLOW, START_SLOW};
    let fixture = Fixture::new();
    let (_plugins, driver) = fixture.driver().await;
    fixture.switch(START_SLOW, Some(""));
    let mut task = fixture.task(1, "sleep 100");
    // Without pipes, whose removal would end it.
    task.logs.disabled = true;
    let starting = {
        let (driver, task) = (driver.clone(), task.clone());
        tokio::spawn(async move { driver.start(task).await })
    };
    fixture.is_called("StartTask", 1).await;
    task.cancel.cancel();
    let (message, _) = problem(starting.await.unwrap().unwrap_err());
    assert_eq!(message, "the task was stopped during its start");
    tokio::time::sleep(2 * SLOW).await;
    assert!(fixture.task_pids().is_empty() && driver.leftovers().is_empty());
}

#[tokio::test]
async fn a_start_that_hangs_ends_with_its_task() {
    let fixture = Fixture::new();
    let (_plugins, driver) = fixture.driver().await;
    fixture.switch(driver_plugin_test_kit::control::START_HANGS, Some(""));
    let task = fixture.task(1, "echo started; sleep 100");
    let starting = {
        let (driver, task) = (driver.clone(), task.clone());
        tokio::spawn(async move { driver.start(task).await })
    };
    fixture.said(&task.id, "started").await;
    task.cancel.cancel();
    let (message, recoverable) = problem(starting.await.unwrap().unwrap_err());
    assert_eq!(message, "the task was stopped during its start");
    assert!(!recoverable && fixture.task_pids().is_empty() && driver.leftovers().is_empty());
}
