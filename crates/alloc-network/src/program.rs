//! Runs of other programs: input, output within bounds, a timeout.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::error::Error;

/// Timeout of a program. Plugins that ask a network for an address take seconds.
const LIMIT: Duration = Duration::from_secs(60);
/// Timeout of standard error after the end of standard output: both end with the program.
const LAST_LINES: Duration = Duration::from_secs(5);
/// Largest output that is read: the state of some hundred thousand port mappings.
const MAX_OUTPUT: u64 = 64 << 20;
/// `PATH` of an agent that has none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Result of a program that has ended.
pub(crate) struct Output {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Returns a command with an environment of its own: the agent's may hold secrets.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    command.env_clear().env("PATH", path).current_dir("/");
    command
}

/// Runs a program to its end.
///
/// # Errors
/// It cannot be started, or does not end in time; it is killed then.
pub(crate) fn run(command: &mut Command, input: Vec<u8>) -> Result<Output, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |source| Error::Run {
        program: program.clone(),
        source,
    };
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program may end without reading its input.
        thread::spawn(move || stdin.write_all(&input));
    }
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let texts = (stdout.recv_timeout(LIMIT), stderr.recv_timeout(LAST_LINES));
    let (Ok(stdout), Ok(stderr)) = texts else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(Error::Timeout {
            program,
            limit_s: LIMIT.as_secs(),
        });
    };
    let status = child.wait().map_err(failed)?;
    Ok(Output {
        is_success: status.success(),
        stdout,
        stderr,
    })
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            let _ = pipe.take(MAX_OUTPUT).read_to_end(&mut bytes);
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}
