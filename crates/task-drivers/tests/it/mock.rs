//! Simulated tasks, on a paused clock.

use std::time::Duration;

use model::job::LogConfig;
use model::{AllocId, Timestamp};
use task_drivers::{
    AllocDirs, Driver, DriverError, MockDriver, Recovery, ResourceLimits, StartError, TaskConfig,
    TaskId,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

fn id(attempt: u32) -> TaskId {
    TaskId {
        alloc_id: AllocId::from_random(1),
        task: "web".to_owned(),
        attempt,
    }
}

fn config(config: serde_json::Value) -> TaskConfig {
    TaskConfig {
        config: config.as_object().unwrap().clone(),
        resources: ResourceLimits {
            cpu_mhz: 100,
            memory_mib: 300,
            ..ResourceLimits::default()
        },
        logs: LogConfig {
            max_files: 10,
            max_file_size_mib: 10,
            disabled: false,
        },
        ..TaskConfig::new(id(1))
    }
}

async fn wait(driver: &MockDriver) -> model::ExitResult {
    let (messages, _keep) = mpsc::channel(1);
    driver.wait(&id(1), &messages).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_run_has_the_configured_length_and_end() {
    let driver = MockDriver::default();
    let began = Instant::now();
    let options = serde_json::json!({"run_for": "10s", "exit_code": 3, "exit_err_msg": "oops"});
    driver.start(config(options)).await.unwrap();
    let exit = wait(&driver).await;
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!((exit.code, exit.message.as_str()), (3, "oops"));
    driver.forget(&id(1)).await.unwrap();
    let (messages, _keep) = mpsc::channel(1);
    let again = driver.wait(&id(1), &messages).await;
    assert!(matches!(again, Err(DriverError::UnknownTask { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_stop_takes_as_long_as_the_task_wants_and_no_longer_than_the_grace() {
    for (options, seconds, signal) in [
        (serde_json::json!({"run_for": "1h"}), 0, 15),
        (
            serde_json::json!({"run_for": "1h", "kill_after": "2s"}),
            2,
            15,
        ),
        (
            serde_json::json!({"run_for": "1h", "kill_after": "20s"}),
            5,
            9,
        ),
        (
            serde_json::json!({"run_for": "1h", "ignore_kill": true}),
            5,
            9,
        ),
    ] {
        let driver = MockDriver::default();
        driver.start(config(options)).await.unwrap();
        let began = Instant::now();
        driver
            .stop(&id(1), "SIGTERM", Duration::from_secs(5))
            .await
            .unwrap();
        assert_eq!(began.elapsed().as_secs(), seconds);
        assert_eq!(wait(&driver).await.signal, signal);
    }
}

#[tokio::test(start_paused = true)]
async fn starts_fail_or_block_as_configured() {
    let driver = MockDriver::default();
    for recoverable in [true, false] {
        let options =
            serde_json::json!({"start_error": "no", "start_error_recoverable": recoverable});
        let error = driver.start(config(options)).await.unwrap_err();
        assert_eq!(
            error,
            StartError::Failed {
                message: "no".to_owned(),
                recoverable
            }
        );
    }
    let blocked = config(serde_json::json!({"start_block_for": "1h"}));
    let cancel = blocked.cancel.clone();
    let began = Instant::now();
    let (started, ()) = tokio::join!(driver.start(blocked), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cancel.cancel();
    });
    assert!(started.is_err());
    assert_eq!(began.elapsed().as_secs(), 3);
    let error = driver
        .start(config(serde_json::json!({"run_fro": "1s"})))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("run_fro"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_first_attempts_can_fail() {
    let driver = MockDriver::default();
    let options = serde_json::json!({"run_for": "1s", "exit_code": 1, "fail_attempts": 2});
    let (messages, _keep) = mpsc::channel(1);
    for (attempt, code) in [(1, 1), (2, 1), (3, 0)] {
        let mut config = config(options.clone());
        config.id.attempt = attempt;
        driver.start(config).await.unwrap();
        assert_eq!(
            driver.wait(&id(attempt), &messages).await.unwrap().code,
            code
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_restarted_agent_recovers_a_run_from_the_wall_clock() {
    let options = serde_json::json!({"run_for": "60s", "exit_code": 4});
    let start = Timestamp::from_millis(1_700_000_000_000);
    let at = |seconds| start.plus(Duration::from_secs(seconds));

    let driver = MockDriver::default();
    let found = driver.recover(config(options.clone()), start, at(40)).await;
    assert_eq!(found, Recovery::Running { note: None });
    let began = Instant::now();
    assert_eq!(wait(&driver).await.code, 4);
    assert_eq!(began.elapsed().as_secs(), 20);

    let found = MockDriver::default()
        .recover(config(options.clone()), start, at(60))
        .await;
    assert!(matches!(found, Recovery::Exited(exit) if exit.code == 4));
    let never = MockDriver::default()
        .recover(config(options), Timestamp::NEVER, at(1))
        .await;
    assert!(matches!(never, Recovery::NotFound { .. }));
}

#[tokio::test(start_paused = true)]
async fn output_is_repeated_until_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = AllocDirs::new(folder.path(), AllocId::from_random(1)).task("web");
    std::fs::create_dir_all(&dirs.logs).unwrap();
    let driver = MockDriver::default();
    let mut config = config(serde_json::json!({
        "run_for": "10s", "stdout_string": "tick\n", "stdout_repeat": 100,
        "stdout_repeat_duration": "3s", "stderr_string": "once\n",
    }));
    config.dirs = Some(dirs.clone());
    driver.start(config).await.unwrap();
    wait(&driver).await;
    let read = |name| std::fs::read_to_string(dirs.logs.join(name)).unwrap();
    assert_eq!(read("web.stdout.0"), "tick\n".repeat(4));
    assert_eq!(read("web.stderr.0"), "once\n");
}

#[tokio::test(start_paused = true)]
async fn signals_succeed_or_fail_as_configured() {
    let driver = MockDriver::default();
    driver
        .start(config(serde_json::json!({"run_for": "1h"})))
        .await
        .unwrap();
    driver.signal(&id(1), "SIGHUP").await.unwrap();
    let options = serde_json::json!({"run_for": "1h", "signal_error": "deaf"});
    driver.start(config(options)).await.unwrap();
    let error = driver.signal(&id(1), "SIGHUP").await.unwrap_err();
    assert!(error.to_string().contains("deaf"), "{error}");
}

#[tokio::test]
async fn twenty_thousand_instances_are_cheap() {
    let driver = std::sync::Arc::new(MockDriver::default());
    let began = Instant::now();
    let mut waits = tokio::task::JoinSet::new();
    for attempt in 1..=20_000 {
        let mut config = config(serde_json::json!({"run_for": "1h"}));
        config.id.attempt = attempt;
        driver.start(config).await.unwrap();
        let driver = std::sync::Arc::clone(&driver);
        waits.spawn(async move {
            let (messages, _keep) = mpsc::channel(1);
            driver.wait(&id(attempt), &messages).await.unwrap()
        });
    }
    println!("20,000 starts took {:?}", began.elapsed());
    for attempt in 1..=20_000 {
        driver.stop(&id(attempt), "", Duration::ZERO).await.unwrap();
    }
    while let Some(exit) = waits.join_next().await {
        assert_eq!(exit.unwrap().signal, 2);
    }
}
