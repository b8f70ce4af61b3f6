//! Plugins that die or hang while tasks run.

use std::fs;

use driver_plugin_test_kit::control::{HANG, RECOVERY_FAILS, START_DIES};
use test_kit::wait_for;

use crate::fixture::{Fixture, LIMIT, problem, wait};

#[tokio::test]
async fn a_killed_plugin_is_started_again_and_its_tasks_go_on() {
    let fixture = Fixture::new();
    let (_plugins, driver) = fixture.driver().await;
    let task = fixture.task(
        1,
        "echo ready; while [ ! -e end ]; do sleep 0.05; done; echo over; exit 4",
    );
    driver.start(task.clone()).await.unwrap();
    let waiting = {
        let (driver, id) = (driver.clone(), task.id.clone());
        tokio::spawn(async move { wait(driver.as_ref(), &id).await })
    };
    fixture.said(&task.id, "ready").await;
    fixture.is_called("WaitTask", 1).await;
    let pids = fixture.task_pids();
    fixture.kill_plugin().await;
    fixture.is_called("RecoverTask", 1).await;
    fixture.is_called("WaitTask", 2).await;
    assert_eq!(fixture.task_pids(), pids, "the task itself goes on");
    wait_for("the driver's health", LIMIT, async || {
        driver.fingerprint().healthy.then_some(())
    })
    .await;
    fs::write(task.dirs.as_ref().unwrap().root.join("end"), "").unwrap();
    assert_eq!(waiting.await.unwrap().code, 4);
    assert_eq!(fixture.output(&task.id, "stdout"), "ready\nover\n");
    assert_eq!(fixture.calls("StartTask"), 1);
}

#[tokio::test]
async fn a_plugin_that_does_not_answer_is_replaced() {
    let mut fixture = Fixture::new();
    fixture.timing.quick_limit = std::time::Duration::from_millis(500);
    let (_plugins, driver) = fixture.driver().await;
    let task = fixture.task(1, "echo ready; sleep 100");
    driver.start(task.clone()).await.unwrap();
    fixture.said(&task.id, "ready").await;
    let old = fixture.plugin_pids();
    fixture.switch(HANG, Some(""));
    wait_for("the end of the hung process", LIMIT, async || {
        let now = fixture.plugin_pids();
        (!now.iter().any(|pid| old.contains(pid))).then_some(())
    })
    .await;
    fixture.switch(HANG, None);
    wait_for("a process that answers", LIMIT, async || {
        driver.fingerprint().healthy.then_some(())
    })
    .await;
    driver
        .stop(&task.id, "SIGKILL", std::time::Duration::ZERO)
        .await
        .unwrap();
    assert!(fixture.task_pids().is_empty());
    assert_eq!(wait(driver.as_ref(), &task.id).await.code, 137);
}

#[tokio::test]
async fn a_plugin_that_dies_during_a_start_leaves_no_second_task() {
    let fixture = Fixture::new();
    let (_plugins, driver) = fixture.driver().await;
    fixture.switch(START_DIES, Some(""));
    let task = fixture.task(1, "echo started; sleep 100");
    let (message, recoverable) = problem(driver.start(task.clone()).await.unwrap_err());
    assert!(
        message.contains("the outcome of the start is unknown"),
        "{message}"
    );
    assert!(recoverable);
    assert_eq!(fixture.calls("StartTask"), 1, "the call is not repeated");
    fixture.is_called("DestroyTask", 1).await;
    assert!(
        driver.leftovers().is_empty(),
        "the new process does not know it"
    );
}

#[tokio::test]
async fn a_task_whose_recovery_fails_is_lost_and_destroyed() {
    let fixture = Fixture::new();
    let (_plugins, driver) = fixture.driver().await;
    let task = fixture.task(1, "echo ready; sleep 100");
    driver.start(task.clone()).await.unwrap();
    let waiting = {
        let (driver, id) = (driver.clone(), task.id.clone());
        tokio::spawn(async move { wait(driver.as_ref(), &id).await })
    };
    fixture.said(&task.id, "ready").await;
    fixture.switch(RECOVERY_FAILS, Some(""));
    fixture.kill_plugin().await;
    let exit = waiting.await.unwrap();
    assert_eq!(exit.code, -1);
    let want = "the task is lost: the plugin cannot recover it: switched off";
    assert_eq!(exit.message, want);
    fixture.is_called("DestroyTask", 1).await;
}

#[tokio::test]
async fn a_killed_copy_of_output_is_no_end_of_the_task() {
    let fixture = Fixture::new();
    let (plugins, driver) = fixture.driver().await;
    let task = fixture.task(
        1,
        "echo ready; while [ ! -e end ]; do sleep 0.05; done; echo over",
    );
    driver.start(task.clone()).await.unwrap();
    fixture.said(&task.id, "ready").await;
    plugins.close().await;
    drop(driver);
    let copiers = fixture.copier_pids();
    assert_eq!(copiers.len(), 1);
    let copier = nix::unistd::Pid::from_raw(copiers[0]);
    nix::sys::signal::kill(copier, nix::sys::signal::Signal::SIGKILL).unwrap();
    let (_plugins, driver) = fixture.driver().await;
    crate::fixture::recover(driver.as_ref(), &task).await;
    // Until then the pipe has no reader, and a task that writes is ended by that.
    wait_for("the reader of the pipe", LIMIT, async || {
        let copiers = fixture.copier_pids();
        copiers
            .iter()
            .any(|pid| has_open(*pid, "stdout.fifo"))
            .then_some(())
    })
    .await;
    fs::write(task.dirs.as_ref().unwrap().root.join("end"), "").unwrap();
    assert_eq!(wait(driver.as_ref(), &task.id).await.code, 0);
    assert_eq!(fixture.output(&task.id, "stdout"), "ready\nover\n");
}

fn has_open(pid: i32, name: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    let mut paths = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    paths.any(|path| path.ends_with(name))
}
