//! Commands beside tasks of `raw_exec`.

use std::fs;
use std::time::Duration;

use task_drivers::command::PARTS;
use task_drivers::{
    Driver, DriverError, ExecCommand, ExecInput, ExecIo, ExecOutput, MockDriver, TaskId,
    TerminalSize,
};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::bench::{Bench, LIMIT, is_alive, wait_for};

/// The caller's ends of a command.
pub(crate) struct Ends {
    input: mpsc::Sender<ExecInput>,
    pub(crate) output: mpsc::Receiver<ExecOutput>,
}

pub(crate) fn ends() -> (Ends, ExecIo) {
    let (input, inputs) = mpsc::channel(PARTS);
    let (outputs, output) = mpsc::channel(PARTS);
    let io = ExecIo {
        input: inputs,
        output: outputs,
    };
    (Ends { input, output }, io)
}

pub(crate) fn shell(script: &str) -> ExecCommand {
    ExecCommand {
        line: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        terminal: None,
    }
}

/// Collects both outputs until their end.
async fn collect(output: &mut mpsc::Receiver<ExecOutput>) -> (String, String) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(part) = output.recv().await {
        match part {
            ExecOutput::Stdout(data) => stdout.extend(data),
            ExecOutput::Stderr(data) => stderr.extend(data),
        }
    }
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr))
}

/// Runs a command with this input to its end.
async fn run(bench: &Bench, command: ExecCommand, input: &str) -> (i32, String, String) {
    run_in((&bench.driver, &bench.id(1)), command, input).await
}

/// Runs a command in a task of a driver, with this input, to its end.
pub(crate) async fn run_in(
    (driver, id): (&dyn Driver, &TaskId),
    command: ExecCommand,
    input: &str,
) -> (i32, String, String) {
    let (mut caller, io) = ends();
    let part = ExecInput::Stdin(input.as_bytes().to_vec());
    caller.input.send(part).await.unwrap();
    caller.input.send(ExecInput::EndOfStdin).await.unwrap();
    let running = driver.exec(id, command, io);
    let both = async { tokio::join!(running, collect(&mut caller.output)) };
    let (code, (stdout, stderr)) = timeout(LIMIT, both).await.expect("the command ends");
    (code.unwrap(), stdout, stderr)
}

async fn end(bench: Bench) {
    bench.stop("SIGKILL", 0).await;
    bench.wait().await;
    bench.finish().await;
}

#[tokio::test]
async fn a_command_has_the_tasks_surroundings_its_own_input_and_an_exit_code() {
    let bench = Bench::new();
    bench.start("echo up; sleep 600").await.unwrap();
    bench.said("up").await;
    let script = "cat; echo \"$NOMAD_TASK_NAME in $PWD\"; echo oops >&2; exit 3";
    let (code, stdout, stderr) = run(&bench, shell(script), "typed\n").await;
    let root = bench.dirs().root;
    assert_eq!(stdout, format!("typed\nweb in {}\n", root.display()));
    assert_eq!((code, stderr.as_str()), (3, "oops\n"));
    let (code, ..) = run(&bench, shell("kill -TERM $$"), "").await;
    assert_eq!(code, 128 + 15);
    let missing = ExecCommand {
        line: vec!["no-such-program".to_owned()],
        terminal: None,
    };
    let (code, _, stderr) = run(&bench, missing, "").await;
    assert_eq!(code, 127);
    assert!(stderr.contains("cannot run no-such-program"), "{stderr}");
    assert_eq!(bench.stdout(), "up\n", "nothing of it is in the task's log");
    end(bench).await;
}

#[tokio::test]
async fn a_command_is_in_the_tasks_control_group_and_dies_with_the_task() {
    let bench = Bench::new();
    bench.start("echo up; sleep 600").await.unwrap();
    bench.said("up").await;
    let group = |pid: &str| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let (_, stdout, _) = run(&bench, shell("cat /proc/self/cgroup"), "").await;
    assert_eq!(stdout, group(&bench.pid("task").to_string()));
    let (mut caller, io) = ends();
    let id = bench.id(1);
    let command = shell("echo $$; sleep 600");
    let running = bench.driver.exec(&id, command, io);
    let stopping = async {
        let first = caller.output.recv().await.unwrap();
        bench.stop("SIGKILL", 0).await;
        first
    };
    let (code, first) = timeout(LIMIT, async { tokio::join!(running, stopping) })
        .await
        .unwrap();
    assert!(matches!(first, ExecOutput::Stdout(_)), "{first:?}");
    assert_eq!(code.unwrap(), 128 + 9);
    bench.wait().await;
    bench.finish().await;
}

#[tokio::test]
async fn a_command_whose_caller_leaves_is_killed_with_its_children() {
    let bench = Bench::without_cgroups();
    bench.start("echo up; sleep 600").await.unwrap();
    bench.said("up").await;
    for terminal in [None, Some(TerminalSize::default())] {
        let (mut caller, io) = ends();
        let command = ExecCommand {
            terminal,
            ..shell("trap '' HUP TERM INT; sleep 600 & echo $$ $!; wait")
        };
        let id = bench.id(1);
        let running = bench.driver.exec(&id, command, io);
        let leaving = async {
            let Some(ExecOutput::Stdout(said)) = caller.output.recv().await else {
                panic!("no output");
            };
            drop(caller);
            String::from_utf8(said).unwrap()
        };
        let (result, said) = timeout(LIMIT, async { tokio::join!(running, leaving) })
            .await
            .unwrap();
        let error = result.unwrap_err().to_string();
        assert!(error.contains("its caller is gone"), "{error}");
        let pids: Vec<i32> = said
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        assert_eq!(pids.len(), 2);
        wait_for("the command to be gone", || {
            (!pids.iter().any(|pid| is_alive(*pid))).then_some(())
        })
        .await;
    }
    assert!(is_alive(bench.pid("task")));
    end(bench).await;
}

#[tokio::test]
async fn a_slow_reader_slows_the_command_and_loses_nothing() {
    const BYTES: usize = 8 << 20;
    let bench = Bench::new();
    bench.start("echo up; sleep 600").await.unwrap();
    bench.said("up").await;
    let (mut caller, io) = ends();
    let id = bench.id(1);
    let script = format!("head -c {BYTES} /dev/zero; echo done >&2");
    let command = shell(&script);
    let running = bench.driver.exec(&id, command, io);
    let reading = async {
        sleep(Duration::from_millis(300)).await;
        assert!(caller.output.len() <= PARTS);
        let mut count = 0;
        let mut stderr_first = None;
        while let Some(part) = caller.output.recv().await {
            match part {
                ExecOutput::Stdout(data) => count += data.len(),
                ExecOutput::Stderr(_) => stderr_first = Some(count),
            }
        }
        (count, stderr_first)
    };
    let (code, (count, said_at)) = timeout(LIMIT, async { tokio::join!(running, reading) })
        .await
        .unwrap();
    assert_eq!((code.unwrap(), count), (0, BYTES));
    // The command was held back: it said so after the reader had begun.
    assert!(said_at.is_some_and(|count| count > 0), "{said_at:?}");
    end(bench).await;
}

#[tokio::test]
async fn a_terminal_has_a_size_and_ends_its_input_by_a_character() {
    let bench = Bench::new();
    bench.start("echo up; sleep 600").await.unwrap();
    bench.said("up").await;
    let size = TerminalSize {
        rows: 33,
        columns: 101,
    };
    let script = "tty >/dev/null && stty size && : </dev/tty && cat && exit 4";
    let command = ExecCommand {
        terminal: Some(size),
        ..shell(script)
    };
    let (code, stdout, stderr) = run(&bench, command, "typed\n").await;
    assert!(stdout.contains("33 101"), "{stdout:?}");
    assert!(
        stdout.matches("typed").count() >= 2,
        "echo and cat: {stdout:?}"
    );
    assert_eq!((code, stderr.as_str()), (4, ""));
    end(bench).await;
}

#[tokio::test]
async fn an_ended_task_and_other_drivers_run_no_commands() {
    let bench = Bench::new();
    bench.start("exit 0").await.unwrap();
    bench.wait().await;
    let refused = bench
        .driver
        .exec(&bench.id(1), shell("true"), ends().1)
        .await;
    assert!(
        matches!(refused, Err(DriverError::UnknownTask { .. })),
        "{refused:?}"
    );
    let mock = MockDriver::default();
    let refused = mock.exec(&bench.id(1), shell("true"), ends().1).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "driver mock_driver cannot run commands in its tasks"
    );
    bench.finish().await;
}
