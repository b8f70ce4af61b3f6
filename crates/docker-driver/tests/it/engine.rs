//! Tasks as containers, from start to removal.

use std::fs;
use std::time::Duration;

use model::{AllocId, AllocatedPort, ExitResult};
use task_drivers::log_files::LogStream;
use task_drivers::{Driver, DriverError, Recovery, StartError};

use crate::bench::Bench;

const GRACE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_task_runs_with_its_environment_and_its_output_and_exit_code_are_kept() {
    let Some(bench) = Bench::new().await else {
        return;
    };
    let script = "echo $GREETING; echo lost >&2; echo mine > /local/file; exit 3";
    bench.start(1, script).await.unwrap();
    let exit = bench.wait(1).await;
    assert_eq!((exit.code, exit.oom_killed), (3, false), "{exit:?}");
    assert_eq!(bench.output(LogStream::Stdout), "hello\n");
    assert_eq!(bench.output(LogStream::Stderr), "lost\n");
    let file = fs::read_to_string(bench.dirs().local.join("file"));
    assert_eq!(file.unwrap(), "mine\n");
    // The exit stays known until the task is forgotten.
    assert_eq!(bench.wait(1).await, exit);
    bench.driver.forget(&bench.id(1)).await.unwrap();
    assert!(bench.containers().await.is_empty());
    assert!(bench.driver.leftovers().is_empty());
    bench.driver.forget(&bench.id(1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_signals_and_kills_after_the_grace() {
    let Some(bench) = Bench::new().await else {
        return;
    };
    let polite = "trap 'echo bye; exit 7' TERM USR1; echo ready; while :; do sleep 0.1; done";
    bench.start(1, polite).await.unwrap();
    bench.wait_for_output(1, "ready").await;
    bench.stop(1, "", GRACE).await;
    assert_eq!(bench.wait(1).await.code, 7);
    assert!(bench.output(LogStream::Stdout).ends_with("bye\n"));
    // A stop of a task that has ended changes nothing.
    bench.stop(1, "", GRACE).await;

    bench.start(2, polite).await.unwrap();
    bench.wait_for_output(2, "ready\nbye\nready").await;
    let refused = bench.driver.signal(&bench.id(2), "SIGNONSENSE").await;
    assert!(
        matches!(refused, Err(DriverError::Signal { .. })),
        "{refused:?}"
    );
    bench.stop(2, "SIGUSR1", GRACE).await;
    assert_eq!(bench.wait(2).await.code, 7);

    let stubborn = "trap '' TERM; echo deaf; while :; do sleep 0.1; done";
    bench.start(3, stubborn).await.unwrap();
    bench.wait_for_output(3, "deaf").await;
    let running = bench.driver.forget(&bench.id(3)).await;
    assert!(
        matches!(running, Err(DriverError::StillRuns { .. })),
        "{running:?}"
    );
    bench.stop(3, "", Duration::from_millis(200)).await;
    assert_eq!(bench.wait(3).await.code, 137);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_agent_finds_its_tasks_and_loses_no_output() {
    let Some(mut bench) = Bench::new().await else {
        return;
    };
    let script = "echo one; while [ ! -e /local/go ]; do sleep 0.1; done; echo two; \
                  while [ ! -e /local/end ]; do sleep 0.1; done; echo three; exit 5";
    bench.start(1, script).await.unwrap();
    bench.wait_for_output(1, "one").await;
    // The call is repeated by an agent that does not know whether the first one succeeded.
    bench.start(1, script).await.unwrap();
    assert_eq!(bench.containers().await, [bench.name()]);

    bench.restart_agent();
    assert_eq!(bench.driver.leftovers(), [bench.id(1)]);
    fs::write(bench.dirs().local.join("go"), "").unwrap();
    assert_eq!(bench.recover(1).await, Recovery::Running { note: None });
    bench.wait_for_output(1, "two").await;

    // It ends while no agent runs.
    bench.restart_agent();
    fs::write(bench.dirs().local.join("end"), "").unwrap();
    let mut found = bench.recover(1).await;
    while matches!(found, Recovery::Running { .. }) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        found = bench.recover(1).await;
    }
    assert!(
        matches!(found, Recovery::Exited(ExitResult { code: 5, .. })),
        "{found:?}"
    );
    assert_eq!(bench.wait(1).await.code, 5);
    assert_eq!(bench.output(LogStream::Stdout), "one\ntwo\nthree\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_a_reboot_ended_starts_again() {
    let Some(mut bench) = Bench::new().await else {
        return;
    };
    bench.start(1, "echo run; exit 9").await.unwrap();
    assert_eq!(bench.wait(1).await.code, 9);
    bench.pretend_reboot(1);
    bench.start(1, "echo run; exit 8").await.unwrap();
    assert_eq!(bench.wait(1).await.code, 8);
    assert_eq!(bench.output(LogStream::Stdout), "run\nrun\n");
    bench.pretend_reboot(1);
    bench.restart_agent();
    let lost = bench.recover(1).await;
    let reason = "the node was rebooted".to_owned();
    assert_eq!(lost, Recovery::NotFound { reason });
    assert!(bench.containers().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_attempt_replaces_the_container_of_the_last_one() {
    let Some(bench) = Bench::new().await else {
        return;
    };
    bench.start(1, "exit 1").await.unwrap();
    assert_eq!(bench.wait(1).await.code, 1);
    bench.start(2, "exit 2").await.unwrap();
    assert_eq!(bench.wait(2).await.code, 2);
    assert_eq!(bench.containers().await, [bench.name()]);
    // The records of the first attempt are all that is left of it.
    bench.driver.forget(&bench.id(1)).await.unwrap();
    assert_eq!(bench.driver.leftovers_of(bench.alloc_id), [bench.id(2)]);
    let lost = bench.recover(1).await;
    assert!(matches!(lost, Recovery::NotFound { .. }), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_074_a_task_above_its_memory_is_killed_and_the_exit_says_so() {
    let Some(bench) = Bench::new().await else {
        return;
    };
    bench
        .start(1, "x=aaaaaaaa; while :; do x=$x$x; done")
        .await
        .unwrap();
    let exit = bench.wait(1).await;
    assert!(exit.oom_killed, "{exit:?}");
    assert!(!exit.is_success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_another_program_removes_is_lost() {
    let Some(bench) = Bench::new().await else {
        return;
    };
    bench.start(1, "while :; do sleep 0.1; done").await.unwrap();
    let options = bollard::query_parameters::RemoveContainerOptionsBuilder::default()
        .force(true)
        .build();
    bench
        .client
        .remove_container(&bench.name(), Some(options))
        .await
        .unwrap();
    let exit = bench.wait(1).await;
    assert!(!exit.is_success(), "{exit:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_starts_say_whether_a_retry_helps_and_leave_nothing() {
    let Some(bench) = Bench::new().await else {
        return;
    };
    let start = async |change: serde_json::Value| {
        let mut task = bench.shell(1, "true");
        for (name, value) in change.as_object().unwrap() {
            task.config.insert(name.clone(), value.clone());
        }
        bench.driver.start(task).await.unwrap_err()
    };
    // A registry that does not answer.
    let error = start(serde_json::json!({"image": "127.0.0.1:1/nothing:1"})).await;
    let StartError::Failed {
        message,
        recoverable,
    } = error
    else {
        panic!("{error:?}");
    };
    assert!(
        message.contains("cannot pull the image 127.0.0.1:1/nothing:1"),
        "{message}"
    );
    assert!(recoverable, "{message}");
    // A program that the image does not have.
    let error = start(serde_json::json!({"command": "/nonexistent"})).await;
    let StartError::Failed {
        message,
        recoverable,
    } = error
    else {
        panic!("{error:?}");
    };
    assert!(message.contains("/nonexistent"), "{message}");
    assert!(!recoverable, "{message}");
    // An option that the node does not allow.
    let error = start(serde_json::json!({"privileged": true})).await;
    assert!(matches!(error, StartError::Config(_)), "{error:?}");
    // A link out of the allocation's directory.
    std::os::unix::fs::symlink("/etc", bench.dirs().local.join("link")).unwrap();
    let error = start(serde_json::json!({"volumes": ["local/link:/x"]})).await;
    assert!(error.to_string().contains("is a link to /etc"), "{error}");
    assert!(bench.containers().await.is_empty());
    assert!(bench.driver.leftovers().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_without_a_record_are_removed() {
    let Some(mut bench) = Bench::new().await else {
        return;
    };
    let script = "while :; do sleep 0.1; done";
    bench.start(1, script).await.unwrap();
    bench.settings.config.dangling_grace = Duration::ZERO;
    // Older than the grace, in the engine's whole seconds.
    tokio::time::sleep(Duration::from_secs(2)).await;
    bench.restart_agent();
    bench.driver.refresh().await;
    assert_eq!(bench.containers().await, [bench.name()], "it has a record");
    fs::remove_dir_all(&bench.settings.state_dir).unwrap();
    bench.driver.refresh().await;
    assert!(bench.containers().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_copied_once_while_the_engine_rotates_its_log() {
    let Some(bench) = Bench::new().await else {
        return;
    };
    // Slow enough for the copier, and some ten rotations.
    let script = "i=0; while [ $i -lt 1500 ]; do i=$((i+1)); echo $i; [ $((i % 50)) = 0 ] && sleep 0.05; done; \
                  sleep 1";
    let mut task = bench.shell(1, script);
    let logging =
        serde_json::json!({"type": "json-file", "config": {"max-size": "10k", "max-file": "3"}});
    task.config.insert("logging".to_owned(), logging);
    bench.driver.start(task).await.unwrap();
    bench.wait(1).await;
    let output = bench.output(LogStream::Stdout);
    let expected: String = (1..=1_500).map(|number| format!("{number}\n")).collect();
    assert!(output == expected, "{} lines", output.lines().count());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_running_containers_use_is_read_from_the_engine() {
    let Some(bench) = Bench::new().await else {
        return;
    };
    let busy = "echo up; while :; do :; done";
    bench.start(1, busy).await.unwrap();
    bench.wait_for_output(1, "up").await;
    assert_eq!(bench.driver.usage(&bench.id(1)), None, "not read yet");
    bench.driver.read_usage().await;
    let first = bench.driver.usage(&bench.id(1)).unwrap();
    assert!(first.memory.is_some_and(|bytes| bytes > 0), "{first:?}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    bench.driver.read_usage().await;
    let second = bench.driver.usage(&bench.id(1)).unwrap();
    let cpu = |usage: &task_drivers::Usage| usage.cpu_user + usage.cpu_system;
    assert!(cpu(&second) > cpu(&first), "{first:?} {second:?}");
    // A request reads the containers of its allocation, and leaves what is known of others.
    bench.driver.read_usage_of(AllocId::from_random(1)).await;
    assert_eq!(bench.driver.usage(&bench.id(1)), Some(second));
    bench.driver.read_usage_of(bench.alloc_id).await;
    let third = bench.driver.usage(&bench.id(1)).unwrap();
    assert!(cpu(&third) > cpu(&second), "{second:?} {third:?}");
    bench.stop(1, "SIGKILL", GRACE).await;
    bench.wait(1).await;
    bench.driver.read_usage().await;
    assert_eq!(bench.driver.usage(&bench.id(1)), None, "it has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_a_container_is_known_while_it_runs_and_after_a_restart_of_the_agent() {
    let Some(mut bench) = Bench::new().await else {
        return;
    };
    let mut task = bench.shell(1, "echo ready; sleep 600");
    task.ports = vec![AllocatedPort {
        label: "http".to_owned(),
        value: 28_931,
        to: 80,
        host_ip: "127.0.0.1".to_owned(),
        ignore_collision: false,
        task: String::new(),
    }];
    let ports = serde_json::json!(["http"]);
    task.config.insert("ports".to_owned(), ports);
    bench.driver.start(task).await.unwrap();
    let id = bench.id(1);
    let address = bench.driver.address(&id).unwrap();
    let inspected = bench.client.inspect_container(&bench.name(), None).await;
    let settings = inspected.unwrap().network_settings.unwrap();
    let bridge = &settings.networks.unwrap()["bridge"];
    assert_eq!(Some(&address.host), bridge.ip_address.as_ref());
    assert!(!address.is_advertised);
    assert_eq!(address.ports, [(28_931, 80)].into());

    bench.restart_agent();
    assert_eq!(bench.driver.address(&id), Some(address.clone()));
    // The record of an earlier version of the agent.
    let attempt = format!("{}/{}/1/address.json", id.alloc_id, id.task);
    fs::remove_file(bench.settings.state_dir.join(attempt)).unwrap();
    assert_eq!(bench.driver.address(&id), None);
    bench.recover(1).await;
    assert_eq!(bench.driver.address(&id), Some(address));
    bench.stop(1, "", Duration::from_millis(200)).await;
    bench.driver.forget(&id).await.unwrap();
    assert_eq!(bench.driver.address(&id), None);
}
