//! Recovery of tasks after the death of agents and supervisors.

use std::fs;

use model::ExitResult;
use task_drivers::{Driver, Recovery};

use crate::bench::{Bench, is_alive, kill, wait_for};

/// Prints a number every 10 ms.
const COUNTING: &str = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done";

fn last_number(said: &str) -> u64 {
    said.lines()
        .next_back()
        .and_then(|line| line.parse().ok())
        .unwrap_or(0)
}

/// Waits until the task has counted on; returns all numbers that its output has.
async fn counts_on(bench: &Bench) -> Vec<u64> {
    let before = last_number(&bench.stdout());
    let said = wait_for("the count to go on", || {
        let said = bench.stdout();
        (said.ends_with('\n') && last_number(&said) > before + 3).then_some(said)
    })
    .await;
    said.lines().map(|line| line.parse().unwrap()).collect()
}

fn assert_complete(numbers: &[u64]) {
    let all: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, all, "no gap and nothing twice");
}

/// A killed supervisor loses the output that it has read but not written.
fn assert_one_gap_at_most(numbers: &[u64]) {
    assert!(
        numbers.is_sorted_by(|a, b| a < b),
        "nothing twice: {numbers:?}"
    );
    let gaps = numbers
        .windows(2)
        .filter(|pair| pair[1] != pair[0] + 1)
        .count();
    assert!(gaps <= 1, "{numbers:?}");
}

async fn end(bench: Bench) {
    bench.stop("SIGKILL", 1000).await;
    bench.finish().await;
}

fn gone(recovery: &Recovery) -> &str {
    match recovery {
        Recovery::NotFound { reason } => reason,
        other => panic!("{other:?}"),
    }
}

async fn kill_supervisor(bench: &Bench) {
    let supervisor = bench.pid("supervisor");
    kill(supervisor, "KILL");
    wait_for("the supervisor to die", || {
        (!is_alive(supervisor)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn scenario_022_a_new_agent_finds_the_same_process_and_its_output_goes_on() {
    let mut bench = Bench::new();
    bench.start(COUNTING).await.unwrap();
    let pid = bench.pid("task");
    assert_eq!(bench.recover().await, Recovery::Running { note: None });
    assert_eq!(bench.pid("task"), pid);
    assert_eq!(
        bench
            .processes()
            .iter()
            .filter(|found| **found == pid)
            .count(),
        1
    );
    assert_complete(&counts_on(&bench).await);
    end(bench).await;
}

#[tokio::test]
async fn scenario_023_the_next_agent_learns_an_unobserved_end() {
    let mut bench = Bench::new();
    bench.start("sleep 0.1; echo done; exit 7").await.unwrap();
    let pid = bench.pid("task");
    wait_for("the task to end", || (!is_alive(pid)).then_some(())).await;
    let found = bench.recover().await;
    assert_eq!(
        found,
        Recovery::Running { note: None },
        "its supervisor will tell"
    );
    assert_eq!(
        bench.wait().await,
        ExitResult {
            code: 7,
            ..ExitResult::default()
        }
    );
    assert_eq!(bench.stdout(), "done\n");
    bench.finish().await;
}

#[tokio::test]
async fn an_end_is_known_even_when_its_supervisor_is_gone_too() {
    let mut bench = Bench::new();
    bench.start("exit 7").await.unwrap();
    let exit_file = bench.kept(1).join("exit.json");
    wait_for("the end to be written", || exit_file.exists().then_some(())).await;
    kill_supervisor(&bench).await;
    let exit = ExitResult {
        code: 7,
        ..ExitResult::default()
    };
    assert_eq!(bench.recover().await, Recovery::Exited(exit));
    bench.finish().await;
}

#[tokio::test]
async fn scenario_025_a_task_that_loses_its_supervisor_gets_another() {
    for bench in [Bench::new(), Bench::without_cgroups()] {
        bench.start(COUNTING).await.unwrap();
        bench.said("3\n").await;
        let pid = bench.pid("task");
        let driver = &bench.driver;
        let id = bench.id(1);
        let (sender, mut messages) = tokio::sync::mpsc::channel(10);
        let message = tokio::select! {
            exit = driver.wait(&id, &sender) => panic!("{exit:?}"),
            message = async { kill_supervisor(&bench).await; messages.recv().await } => message.unwrap(),
        };
        assert!(
            message.contains("supervisor of the task was replaced"),
            "{message}"
        );
        assert_eq!(bench.pid("task"), pid, "the same process");
        assert!(is_alive(pid));
        assert_one_gap_at_most(&counts_on(&bench).await);
        kill(pid, "TERM");
        let exit = bench.wait().await;
        assert!(exit.message.contains("exit code unknown"), "{exit:?}");
        assert!(!exit.is_success());
        bench.finish().await;
    }
}

#[tokio::test]
async fn scenario_026_a_task_that_loses_agent_and_supervisor_is_found_once() {
    for mut bench in [Bench::new(), Bench::without_cgroups()] {
        bench.start(COUNTING).await.unwrap();
        bench.said("3\n").await;
        let pid = bench.pid("task");
        kill_supervisor(&bench).await;
        let Recovery::Running { note: Some(_) } = bench.recover().await else {
            panic!()
        };
        assert_eq!(bench.pid("task"), pid);
        assert_one_gap_at_most(&counts_on(&bench).await);
        bench.stop("SIGTERM", 5_000).await;
        assert!(
            bench.processes().is_empty(),
            "an adopted task dies with its children"
        );
        bench.finish().await;
    }
}

#[tokio::test]
async fn scenario_027_a_process_without_a_record_is_killed() {
    for mut bench in [Bench::new(), Bench::without_cgroups()] {
        bench
            .start("(setsid sleep 600 &); sleep 600")
            .await
            .unwrap();
        // As if the supervisor had died between starting the task and writing state.json.
        let supervisor = bench.pid("supervisor");
        kill(supervisor, "STOP");
        fs::remove_file(bench.kept(1).join("state.json")).unwrap();
        kill(supervisor, "KILL");
        wait_for("the supervisor to die", || {
            (!is_alive(supervisor)).then_some(())
        })
        .await;
        assert!(!bench.processes().is_empty());
        let found = bench.recover().await;
        assert!(gone(&found).contains("neither"), "{found:?}");
        assert!(bench.processes().is_empty());
        bench.finish().await;
    }
}

#[tokio::test]
async fn a_task_that_was_never_started_is_not_found() {
    let mut bench = Bench::new();
    let found = bench.recover().await;
    assert_eq!(gone(&found), "it was never started");
    bench.start("exit 0").await.unwrap();
    bench.wait().await;
    kill_supervisor(&bench).await;
    // As if the agent had died before it started the supervisor.
    for file in ["state.json", "exit.json", "control.sock"] {
        fs::remove_file(bench.kept(1).join(file)).unwrap();
    }
    let found = bench.recover().await;
    assert!(gone(&found).contains("neither"), "{found:?}");
    bench.finish().await;
}

#[tokio::test]
async fn a_repeated_start_reuses_the_process() {
    let mut bench = Bench::new();
    bench.start(COUNTING).await.unwrap();
    let pid = bench.pid("task");
    bench.driver = task_drivers::RawExec::new(bench.settings.clone());
    bench.start(COUNTING).await.unwrap();
    assert_eq!(bench.pid("task"), pid);
    bench.stop("SIGKILL", 1000).await;
    bench.driver = task_drivers::RawExec::new(bench.settings.clone());
    bench.start(COUNTING).await.unwrap();
    assert_eq!(bench.wait().await.signal, 9, "its end is not undone");
    kill_supervisor(&bench).await;
    fs::remove_file(bench.kept(1).join("exit.json")).unwrap();
    bench.start(COUNTING).await.unwrap();
    assert_ne!(bench.pid("task"), pid, "of this one nothing was left");
    end(bench).await;
}

#[tokio::test]
async fn scenario_030_after_a_reboot_no_process_is_mistaken_for_the_task() {
    let mut bench = Bench::new();
    bench.start("exec sleep 600").await.unwrap();
    let pid = bench.pid("task");
    kill_supervisor(&bench).await;
    // As after a reboot, with the task's pid reused.
    for file in ["intent.json", "state.json"] {
        let path = bench.kept(1).join(file);
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(boot.trim(), "another-boot")).unwrap();
    }
    let found = bench.recover().await;
    assert_eq!(gone(&found), "the node was rebooted");
    assert!(is_alive(pid), "a process of another task is left alone");
    kill(pid, "KILL");
    wait_for("the process to die", || {
        bench.processes().is_empty().then_some(())
    })
    .await;
    bench.finish().await;
}

#[tokio::test]
async fn a_supervisor_does_not_die_of_signals_meant_for_the_agent() {
    let bench = Bench::new();
    bench.start("sleep 600").await.unwrap();
    let supervisor = bench.pid("supervisor");
    for signal in ["HUP", "INT", "QUIT", "TERM"] {
        kill(supervisor, signal);
    }
    bench.stop("SIGKILL", 1000).await;
    assert_eq!(bench.wait().await.signal, 9, "it is there to tell");
    bench.finish().await;
}

#[tokio::test]
async fn a_supervisor_that_cannot_start_is_an_error_that_quotes_it() {
    let bench = Bench::with(|settings| {
        settings.supervisor.program = "/bin/sh".into();
        settings.supervisor.args = vec!["-c".into(), "echo no room >&2; exit 1".into()];
    });
    let error = bench.start("true").await.unwrap_err().to_string();
    assert!(error.contains("no room"), "{error}");
    bench.finish().await;
}
