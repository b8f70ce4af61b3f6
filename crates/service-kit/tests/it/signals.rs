//! A process that gets a signal to stop.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use service_kit::{CancellationToken, TelemetryConfig, run_service};

/// The variable with the child process's task; set only by the tests below.
const CHILD: &str = "KAFILA_TEST_CHILD";

/// Not a test of its own: the body of the child process. Does nothing otherwise.
#[test]
fn child() {
    let Ok(behaviour) = std::env::var(CHILD) else {
        return;
    };
    let body = |drain: CancellationToken| async move {
        println!("running");
        match behaviour.as_str() {
            "drains" => drain.cancelled().await,
            "hangs" => {
                drain.cancelled().await;
                println!("draining");
                std::future::pending::<()>().await;
            }
            _ => return Err(std::io::Error::other("the store is on fire")),
        }
        println!("drained");
        Ok(())
    };
    let code = run_service("example", &TelemetryConfig::default(), body);
    println!("{code:?}");
}

struct Running {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn start(behaviour: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "signals::child", "--nocapture"])
            .env(CHILD, behaviour)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn wait_for_line(&mut self, wanted: &str) {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if line.trim_end().ends_with(wanted) {
                return;
            }
            line.clear();
        }
        panic!("the child ended without saying {wanted:?}");
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Returns the exit code and everything still said.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        let mut logged = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut logged)
            .unwrap();
        (self.child.wait().unwrap().code(), said + &logged)
    }
}

#[test]
fn each_of_both_signals_drains() {
    for signal in ["-INT", "-TERM"] {
        let mut running = Running::start("drains");
        running.wait_for_line("running");
        running.signal(signal);
        let (code, said) = running.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.contains("drained") && said.contains("unix_exit_status(0)"),
            "{said}"
        );
        assert!(
            said.contains("draining; a second signal exits at once"),
            "{said}"
        );
    }
}

#[test]
fn a_second_signal_exits_at_once() {
    let mut running = Running::start("hangs");
    running.wait_for_line("running");
    running.signal("-TERM");
    running.wait_for_line("draining");
    // One that is sent together with the first does not count.
    for _ in 0..100 {
        running.signal("-INT");
        std::thread::sleep(Duration::from_millis(50));
        if running.child.try_wait().unwrap().is_some() {
            break;
        }
    }
    let (code, said) = running.end();
    assert_eq!(code, Some(130), "{said}");
}

/// `timeout` signals the process and its group.
#[test]
fn signals_that_are_sent_together_count_as_one() {
    let mut running = Running::start("drains");
    running.wait_for_line("running");
    let pid = running.child.id().to_string();
    let together = format!("kill -TERM {pid}; kill -INT {pid}; kill -TERM {pid}");
    let status = Command::new("sh").args(["-c", &together]).status();
    assert!(status.is_ok());
    let (code, said) = running.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("drained"), "{said}");
}

#[test]
fn a_service_that_fails_says_why() {
    let (_, said) = Running::start("fails").end();
    assert!(said.contains("the store is on fire"), "{said}");
    assert!(said.contains("unix_exit_status(1)"), "{said}");
}
