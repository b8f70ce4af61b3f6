//! Tasks as containers of podman, whose API differs from Docker's in places.

use std::fs;
use std::time::Duration;

use model::{AllocatedPort, ExitResult};
use serde_json::json;
use task_drivers::log_files::LogStream;
use task_drivers::{Driver, NetworkAsk, Recovery, StartError};

use crate::bench::Bench;

const GRACE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_task_runs_with_its_environment_and_its_output_and_exit_code_are_kept() {
    let Some(bench) = Bench::podman().await else {
        return;
    };
    let script = "echo $GREETING; echo lost >&2; echo mine > /local/file; printf end; exit 3";
    bench.start(1, script).await.unwrap();
    let exit = bench.wait(1).await;
    let message = "Podman container exited with non-zero exit code: 3";
    assert_eq!((exit.code, exit.message.as_str()), (3, message), "{exit:?}");
    assert!(!exit.oom_killed);
    assert_eq!(bench.output(LogStream::Stdout), "hello\nend");
    assert_eq!(bench.output(LogStream::Stderr), "lost\n");
    let file = fs::read_to_string(bench.dirs().local.join("file"));
    assert_eq!(file.unwrap(), "mine\n");
    assert_eq!(bench.wait(1).await, exit);
    bench.driver.forget(&bench.id(1)).await.unwrap();
    assert!(bench.containers().await.is_empty());
    assert!(bench.driver.leftovers().is_empty());
    bench.driver.forget(&bench.id(1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_signals_and_kills_after_the_grace_and_the_next_attempt_replaces_the_last() {
    let Some(bench) = Bench::podman().await else {
        return;
    };
    let polite = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.1; done";
    bench.start(1, polite).await.unwrap();
    bench.wait_for_output(1, "ready").await;
    let refused = bench.driver.signal(&bench.id(1), "SIGNONSENSE").await;
    assert!(refused.is_err(), "{refused:?}");
    bench.stop(1, "", GRACE).await;
    assert_eq!(bench.wait(1).await.code, 7);
    assert!(bench.output(LogStream::Stdout).ends_with("bye\n"));
    bench.stop(1, "", GRACE).await;

    let stubborn = "trap '' TERM; echo deaf; while :; do sleep 0.1; done";
    bench.start(2, stubborn).await.unwrap();
    bench.wait_for_output(2, "deaf").await;
    assert_eq!(bench.containers().await, [bench.name()]);
    bench.stop(2, "", Duration::from_millis(200)).await;
    assert_eq!(bench.wait(2).await.code, 137);
}

/// The agent restarts, and so does podman's service, which has no part in running a container.
#[tokio::test(flavor = "multi_thread")]
async fn scenarios_028_and_029_a_container_outlives_agent_and_service_and_loses_no_output() {
    let Some(mut bench) = Bench::podman().await else {
        return;
    };
    let script = "echo one; while [ ! -e /local/go ]; do sleep 0.1; done; echo two; \
                  while [ ! -e /local/end ]; do sleep 0.1; done; echo three; exit 5";
    bench.start(1, script).await.unwrap();
    bench.wait_for_output(1, "one").await;
    bench.start(1, script).await.unwrap();
    assert_eq!(bench.containers().await, [bench.name()]);
    let id = async |bench: &Bench| {
        let found = bench.client.inspect_container(&bench.name(), None).await;
        found.unwrap().id
    };
    let before = id(&bench).await;

    bench.restart_service().await;
    bench.restart_agent();
    assert_eq!(bench.driver.leftovers(), [bench.id(1)]);
    fs::write(bench.dirs().local.join("go"), "").unwrap();
    assert_eq!(bench.recover(1).await, Recovery::Running { note: None });
    bench.wait_for_output(1, "two").await;
    assert_eq!(id(&bench).await, before);

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
async fn scenario_074_a_task_above_its_memory_is_killed_and_the_exit_says_so() {
    let Some(bench) = Bench::podman().await else {
        return;
    };
    let script = "x=aaaaaaaa; while :; do x=$x$x; done";
    bench.start(1, script).await.unwrap();
    let exit = bench.wait(1).await;
    // With control groups of version 1, podman 4.3 tells no more than the signal.
    assert!(exit.oom_killed || exit.code == 137, "{exit:?}");
    assert!(!exit.is_success());
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_podman_reach_the_container() {
    let Some(bench) = Bench::podman().await else {
        return;
    };
    // The image has a shell, and no other program.
    let script = "show() { while IFS= read -r line; do echo \"$line\"; done < \"$1\"; }; show /proc/self/mounts; pwd; \
                  ulimit -n; show /etc/hosts; show /proc/self/status";
    let mut task = bench.shell(1, script);
    let more = json!({
        "image": "docker://kafila-driver-test:1", "working_dir": "/local", "tmpfs": ["/scratch:size=1m"],
        "ulimit": [{"nofile": "100:200", "nproc": "4000"}], "hostname": "own", "security_opt": ["no-new-privileges"],
        "extra_hosts": ["db:10.1.2.3"], "cap_drop": ["all"], "pids_limit": 50, "shm_size": "1m",
        "memory_reservation": "32m", "readonly_rootfs": true, "labels": [{"a": "b"}],
        "logging": [{"driver": "nomad"}],
    });
    task.config.extend(more.as_object().unwrap().clone());
    bench.driver.start(task).await.unwrap();
    bench.wait(1).await;
    let said = bench.output(LogStream::Stdout);
    for part in [
        "tmpfs /scratch",
        "/local\n100\n",
        "NoNewPrivs:\t1",
        "10.1.2.3",
        "CapBnd:\t0000000000000000",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let found = bench
        .client
        .inspect_container(&bench.name(), None)
        .await
        .unwrap();
    let host = found.host_config.unwrap();
    assert_eq!(host.pids_limit, Some(50));
    assert_eq!(host.shm_size, Some(1 << 20));
    assert_eq!(host.memory_reservation, Some(32 << 20));
    assert_eq!(found.config.unwrap().hostname.as_deref(), Some("own"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_published_and_the_address_is_known() {
    let Some(bench) = Bench::podman().await else {
        return;
    };
    let mut task = bench.shell(1, "echo ready; sleep 600");
    task.ports = vec![AllocatedPort {
        label: "http".to_owned(),
        value: 28_947,
        to: 80,
        host_ip: "127.0.0.1".to_owned(),
        ignore_collision: false,
        task: String::new(),
    }];
    task.config.insert("ports".to_owned(), json!(["http"]));
    bench.driver.start(task).await.unwrap();
    let address = bench.driver.address(&bench.id(1)).unwrap();
    assert!(
        !address.host.is_empty() && !address.is_advertised,
        "{address:?}"
    );
    assert_eq!(address.ports, [(28_947, 80)].into());
    bench.stop(1, "", Duration::from_millis(200)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pause_container_of_a_group_is_made_once_and_removed() {
    let Some(bench) = Bench::podman().await else {
        return;
    };
    let ask = NetworkAsk {
        alloc_id: bench.alloc_id,
        hostname: "web".to_owned(),
    };
    let pid = bench.driver.make_network(ask.clone()).await.unwrap();
    assert!(fs::metadata(format!("/proc/{pid}/ns/net")).is_ok());
    assert_eq!(bench.driver.make_network(ask).await, Ok(pid));
    bench.driver.remove_network(bench.alloc_id).await.unwrap();
    assert!(bench.containers().await.is_empty());
    bench.driver.remove_network(bench.alloc_id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_starts_say_whether_a_retry_helps_and_leave_nothing() {
    let Some(bench) = Bench::podman().await else {
        return;
    };
    let start = async |change: serde_json::Value| {
        let mut task = bench.shell(1, "true");
        task.config.extend(change.as_object().unwrap().clone());
        bench.driver.start(task).await.unwrap_err()
    };
    for (change, problem, may_retry) in [
        (
            json!({"image": "127.0.0.1:1/nothing:1"}),
            "cannot pull the image 127.0.0.1:1/nothing:1",
            true,
        ),
        (
            json!({"image": "localhost/nothing:1"}),
            "the node has no image localhost/nothing:1",
            false,
        ),
        (json!({"command": "/nonexistent"}), "/nonexistent", false),
    ] {
        let error = start(change).await;
        let StartError::Failed {
            message,
            recoverable,
        } = error
        else {
            panic!("{error:?}");
        };
        assert!(message.contains(problem), "{message}");
        assert_eq!(recoverable, may_retry, "{message}");
    }
    let error = start(json!({"volumes": ["/etc:/x"]})).await;
    assert!(
        error.to_string().contains("drivers.podman.volumes"),
        "{error}"
    );
    assert!(bench.containers().await.is_empty());
    assert!(bench.driver.leftovers().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_without_a_record_are_removed() {
    let Some(mut bench) = Bench::podman().await else {
        return;
    };
    bench.start(1, "while :; do sleep 0.1; done").await.unwrap();
    bench.settings.config.dangling_grace = Duration::ZERO;
    tokio::time::sleep(Duration::from_secs(2)).await;
    bench.restart_agent();
    bench.driver.refresh().await;
    assert_eq!(bench.containers().await, [bench.name()], "it has a record");
    fs::remove_dir_all(&bench.settings.state_dir).unwrap();
    bench.driver.refresh().await;
    assert!(bench.containers().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_running_containers_use_is_read() {
    let Some(bench) = Bench::podman().await else {
        return;
    };
    bench
        .start(1, "echo up; while :; do :; done")
        .await
        .unwrap();
    bench.wait_for_output(1, "up").await;
    bench.driver.read_usage().await;
    let used = bench.driver.usage(&bench.id(1)).unwrap();
    assert!(used.memory.is_some_and(|bytes| bytes > 0), "{used:?}");
    assert!(!(used.cpu_user + used.cpu_system).is_zero(), "{used:?}");
    bench.stop(1, "SIGKILL", GRACE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fingerprint_has_podmans_version_and_says_where_it_is_missing() {
    let Some(mut bench) = Bench::podman().await else {
        return;
    };
    bench.driver.refresh().await;
    let found = bench.driver.fingerprint();
    assert!(found.detected && found.healthy, "{found:?}");
    assert_eq!(bench.driver.name(), "podman");
    assert_eq!(found.attributes["driver.podman"], "1");
    let version = bench.client.version().await.unwrap().version.unwrap();
    assert_eq!(found.attributes["driver.podman.version"], version);
    assert_eq!(found.attributes["driver.podman.rootless"], "false");
    assert!(!found.attributes["driver.podman.ociRuntime"].is_empty());

    let socket = bench.settings.config.socket.with_file_name("none.sock");
    let real = std::mem::replace(&mut bench.settings.config.socket, socket);
    bench.restart_agent();
    bench.driver.refresh().await;
    let found = bench.driver.fingerprint();
    assert!(!found.detected, "{found:?}");
    assert!(
        found.description.contains("no Podman socket at "),
        "{found:?}"
    );
    bench.settings.config.socket = real;
}
