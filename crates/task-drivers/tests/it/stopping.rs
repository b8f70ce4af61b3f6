//! Stops: every process of a task ends.

use std::path::PathBuf;

use task_drivers::Driver;
use tokio::time::Instant;

use crate::bench::{Bench, is_alive};

/// Both ways to find the processes of a task.
fn benches() -> [Bench; 2] {
    [Bench::new(), Bench::without_cgroups()]
}

#[tokio::test]
async fn a_task_receives_its_signal_and_can_shut_down() {
    for bench in benches() {
        bench
            .start("trap 'echo cleaning; exit 3' TERM; echo ready; while :; do sleep 0.01; done")
            .await
            .unwrap();
        bench.said("ready").await;
        bench.stop("SIGTERM", 10_000).await;
        let exit = bench.wait().await;
        assert_eq!((exit.code, exit.signal), (3, 0));
        assert!(bench.stdout().contains("cleaning"));
        bench.finish().await;
    }
}

#[tokio::test]
async fn the_default_signal_is_interrupt() {
    let bench = Bench::new();
    bench.start("exec sleep 600").await.unwrap();
    bench.stop("", 10_000).await;
    assert_eq!(bench.wait().await.signal, 2);
    bench.finish().await;
}

#[tokio::test]
async fn scenario_045_a_task_that_ignores_its_signal_is_killed_after_the_grace() {
    for bench in benches() {
        bench
            .start("trap '' INT TERM; sleep 600 & echo ready; while :; do sleep 0.01; done")
            .await
            .unwrap();
        bench.said("ready").await;
        let began = Instant::now();
        bench.stop("SIGTERM", 300).await;
        assert!(began.elapsed().as_millis() >= 300);
        assert!(
            bench.processes().is_empty(),
            "its children too, when stop returns"
        );
        assert_eq!(bench.wait().await.signal, 9);
        bench.finish().await;
    }
}

#[tokio::test]
async fn scenario_046_a_daemon_that_left_session_and_group_dies_with_its_task() {
    for bench in benches() {
        // It forks twice, so that its parent is gone, too.
        let script = "(setsid sh -c 'trap \"\" INT TERM HUP; echo daemon $$; sleep 600' &) ; \
                      trap '' INT; echo ready; while :; do sleep 0.01; done";
        bench.start(script).await.unwrap();
        bench.said("ready\n").await;
        let said = bench.said("daemon").await;
        let daemon: i32 = said
            .lines()
            .find_map(|line| line.strip_prefix("daemon "))
            .unwrap()
            .parse()
            .unwrap();
        assert!(is_alive(daemon));
        let began = Instant::now();
        bench.stop("", 100).await;
        // Far less than the task would run; a loaded machine is slow.
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
        assert!(!is_alive(daemon));
        assert!(bench.processes().is_empty());
        bench.finish().await;
    }
}

#[tokio::test]
async fn remaining_processes_of_an_ended_task_are_killed() {
    for bench in benches() {
        bench
            .start("(setsid sleep 600 &); sleep 600 & exit 5")
            .await
            .unwrap();
        assert_eq!(bench.wait().await.code, 5);
        assert!(bench.processes().is_empty());
        bench.finish().await;
    }
}

#[tokio::test]
async fn stopping_twice_or_after_the_end_is_no_error() {
    let bench = Bench::new();
    bench.start("exec sleep 600").await.unwrap();
    tokio::join!(bench.stop("SIGTERM", 5_000), bench.stop("SIGTERM", 5_000));
    bench.stop("SIGTERM", 5_000).await;
    assert_eq!(bench.wait().await.signal, 15);
    bench.driver.forget(&bench.id(1)).await.unwrap();
    bench.stop("SIGTERM", 5_000).await;
    bench.finish().await;
}

#[tokio::test]
async fn a_task_of_an_agent_that_ignores_interrupts_receives_them() {
    let supervisor = env!("CARGO_BIN_EXE_task-supervisor");
    let bench = Bench::with(|settings| {
        settings.supervisor.program = PathBuf::from("/bin/sh");
        let script = format!("trap '' INT TERM HUP CHLD; exec {supervisor} \"$0\" \"$@\"");
        settings.supervisor.args = vec!["-c".into(), script.into()];
    });
    bench.start("exec sleep 600").await.unwrap();
    bench.stop("SIGINT", 15_000).await;
    assert_eq!(bench.wait().await.signal, 2);
    bench.finish().await;
}
