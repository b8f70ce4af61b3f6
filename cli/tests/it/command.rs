//! Runs the binary in a clean environment.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

/// Timeout of a command on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// An address without a server: the port is reserved (tcpmux).
pub(crate) const UNREACHABLE: &str = "http://127.0.0.1:1";

/// A command line under construction.
pub(crate) struct Kafila {
    command: Command,
    stdin: Option<Vec<u8>>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Starts a command line, for example `kafila("job status web")`, split at spaces.
pub(crate) fn kafila(line: &str) -> Kafila {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kafila"));
    command
        .env_clear()
        .env("TZ", "UTC")
        .env("KAFILA_ADDR", UNREACHABLE);
    command.args(line.split(' ').filter(|word| !word.is_empty()));
    Kafila {
        command,
        stdin: None,
    }
}

impl Kafila {
    pub(crate) fn arg(mut self, word: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn current_dir(mut self, path: &Path) -> Self {
        self.command.current_dir(path);
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.as_bytes().to_vec());
        self
    }

    /// Runs against the gateway at `address`.
    pub(crate) async fn at(self, address: &str) -> Said {
        self.env("KAFILA_ADDR", address).run().await
    }

    pub(crate) async fn run(self) -> Said {
        let Self { command, stdin } = self;
        let mut command = tokio::process::Command::from(command);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // A command that does not read its input closes it; that is its right.
        let _ = pipe.write_all(&stdin.unwrap_or_default()).await;
        drop(pipe);
        let output = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await;
        said(output.expect("the command ends").unwrap())
    }

    /// Starts it without waiting for its end.
    pub(crate) fn start(self, address: &str) -> tokio::process::Child {
        let mut command = tokio::process::Command::from(self.env("KAFILA_ADDR", address).command);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.kill_on_drop(true).spawn().unwrap()
    }
}

pub(crate) fn said(output: Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Said {
    /// Asserts the exit code, showing everything when it is another.
    #[track_caller]
    pub(crate) fn ended(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that standard output holds each of `parts`, in this order.
    #[track_caller]
    pub(crate) fn printed(&self, parts: &[&str]) -> &Self {
        in_order("stdout", &self.stdout, parts);
        self
    }

    /// Asserts that standard error holds each of `parts`, in this order.
    #[track_caller]
    pub(crate) fn complained(&self, parts: &[&str]) -> &Self {
        in_order("stderr", &self.stderr, parts);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        self.ended(0);
        serde_json::from_str(&self.stdout).expect(&self.stdout)
    }
}

#[track_caller]
fn in_order(stream: &str, text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        match rest.find(part) {
            Some(position) => rest = &rest[position + part.len()..],
            None => panic!("{stream} lacks {part:?} (in this place):\n{text}"),
        }
    }
}
