//! Restarts of the agent.

use std::fs;

use driver_plugin_test_kit::control::{RECOVERY_FAILS, START_HANGS};
use serde_json::json;
use task_drivers::Recovery;

use crate::fixture::{Fixture, object, recover, wait};

const RUNS: Recovery = Recovery::Running { note: None };

#[tokio::test]
async fn the_next_agent_uses_the_process_that_stayed_for_its_tasks() {
    let fixture = Fixture::new();
    let (plugins, driver) = fixture.driver().await;
    let task = fixture.task(
        1,
        "echo ready; while [ ! -e end ]; do sleep 0.05; done; echo over; exit 4",
    );
    driver.start(task.clone()).await.unwrap();
    fixture.said(&task.id, "ready").await;
    let pids = fixture.plugin_pids();
    plugins.close().await;
    drop((plugins, driver));
    assert_eq!(fixture.plugin_pids(), pids, "it stays");
    let (plugins, driver) = fixture.driver().await;
    assert_eq!(fixture.plugin_pids(), pids, "it is used");
    assert!(driver.fingerprint().healthy);
    assert_eq!(recover(driver.as_ref(), &task).await, RUNS);
    assert_eq!(fixture.calls("RecoverTask"), 0, "it knows its task");
    fs::write(task.dirs.as_ref().unwrap().root.join("end"), "").unwrap();
    assert_eq!(wait(driver.as_ref(), &task.id).await.code, 4);
    assert_eq!(fixture.output(&task.id, "stdout"), "ready\nover\n");
    driver.forget(&task.id).await.unwrap();
    plugins.close().await;
    assert!(fixture.plugin_pids().is_empty(), "there is no task left");
}

#[tokio::test]
async fn a_new_process_takes_the_tasks_over() {
    let fixture = Fixture::new();
    let (plugins, driver) = fixture.driver().await;
    let task = fixture.task(1, "echo ready; sleep 100");
    let ended = fixture.task(2, "exit 3");
    driver.start(task.clone()).await.unwrap();
    driver.start(ended.clone()).await.unwrap();
    fixture.said(&task.id, "ready").await;
    plugins.close().await;
    drop((plugins, driver));
    fixture.kill_plugin().await;
    let (_plugins, driver) = fixture.driver().await;
    assert_eq!(recover(driver.as_ref(), &task).await, RUNS);
    assert_eq!(
        recover(driver.as_ref(), &ended).await,
        RUNS,
        "its wait has the end"
    );
    assert_eq!(wait(driver.as_ref(), &ended.id).await.code, 3);
    assert!(
        matches!(recover(driver.as_ref(), &ended).await, Recovery::Exited(exit) if exit.code == 3)
    );
    assert_eq!(fixture.calls("RecoverTask"), 2);
    driver
        .stop(&task.id, "SIGKILL", std::time::Duration::ZERO)
        .await
        .unwrap();
    assert!(fixture.task_pids().is_empty());
}

#[tokio::test]
async fn a_process_with_other_settings_is_replaced() {
    let mut fixture = Fixture::new();
    let (plugins, driver) = fixture.driver().await;
    let task = fixture.task(1, "echo ready; sleep 100");
    driver.start(task.clone()).await.unwrap();
    let pids = fixture.plugin_pids();
    plugins.close().await;
    fixture.config.config = object(json!({"greeting": "again"}));
    let (_plugins, driver) = fixture.driver().await;
    assert_ne!(fixture.plugin_pids(), pids);
    assert_eq!(
        driver.fingerprint().attributes["driver.stand-in.greeting"],
        "again"
    );
    assert_eq!(recover(driver.as_ref(), &task).await, RUNS);
    assert_eq!(fixture.calls("RecoverTask"), 1);
}

#[tokio::test]
async fn a_task_that_cannot_be_recovered_is_not_found_and_not_left() {
    let fixture = Fixture::new();
    let (plugins, driver) = fixture.driver().await;
    let task = fixture.task(1, "echo ready; sleep 100");
    driver.start(task.clone()).await.unwrap();
    plugins.close().await;
    fixture.kill_plugin().await;
    fixture.switch(RECOVERY_FAILS, Some(""));
    let (_plugins, driver) = fixture.driver().await;
    let found = recover(driver.as_ref(), &task).await;
    let Recovery::NotFound { reason } = found else {
        panic!("{found:?}");
    };
    assert_eq!(reason, "the plugin cannot recover it: switched off");
    assert_eq!(fixture.calls("DestroyTask"), 1);
    assert!(driver.leftovers().is_empty());
}

#[tokio::test]
async fn a_start_that_an_agent_did_not_see_end_is_destroyed() {
    let fixture = Fixture::new();
    let (plugins, driver) = fixture.driver().await;
    fixture.switch(START_HANGS, Some(""));
    let task = fixture.task(1, "echo started; sleep 100");
    let starting = {
        let (driver, task) = (driver.clone(), task.clone());
        tokio::spawn(async move { driver.start(task).await })
    };
    fixture.said(&task.id, "started").await;
    starting.abort();
    plugins.close().await;
    fixture.switch(START_HANGS, None);
    let (_plugins, driver) = fixture.driver().await;
    let found = recover(driver.as_ref(), &task).await;
    assert!(matches!(found, Recovery::NotFound { .. }), "{found:?}");
    assert!(
        fixture.task_pids().is_empty(),
        "a task without a handle is no task"
    );
}
