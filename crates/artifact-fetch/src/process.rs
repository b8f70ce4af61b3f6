//! Runs of the helper process: started with a bounded environment, killed with its children when its
//! work is dropped.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::wire::{Order, Report};

/// Bytes of the helper's answer: a list of checksums, escaped.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Bytes of its standard error: the message of a panic.
const ERRORS_BYTES_MAX: u64 = 8 << 10;
/// Directories of programs, if the agent's environment names none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The program of the helper.
#[derive(Clone, Debug)]
pub struct HelperCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

impl HelperCommand {
    /// The agent's own program with a subcommand. The path stays that of this version when the file is
    /// replaced.
    pub fn own_program(subcommand: &str) -> Self {
        Self {
            program: "/proc/self/exe".into(),
            args: vec![subcommand.into()],
        }
    }
}

/// The variables of the helper's environment.
pub(crate) fn environment(
    names: &[String],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<(String, OsString)> {
    let path = variable("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let allowed = names
        .iter()
        .filter_map(|name| Some((name.clone(), variable(name)?)));
    [("PATH".to_owned(), path)]
        .into_iter()
        .chain(allowed)
        .collect()
}

/// Runs an order to its end. Dropped before, it kills the helper and its children.
///
/// # Errors
/// The helper could not be started, or ended without an answer.
pub(crate) async fn run(
    command: &HelperCommand,
    environment: &[(String, OsString)],
    order: &Order,
) -> Result<Report, String> {
    let failed = |error: io::Error| format!("cannot start the helper process: {error}");
    let mut child = Command::new(&command.program)
        .args(&command.args)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let mut group = Group::of(&child);
    let mut line = serde_json::to_vec(order).map_err(|_| "cannot encode the order".to_owned())?;
    line.push(b'\n');
    let mut input = child.stdin.take();
    if let Some(input) = &mut input {
        // A helper that has ended answers for it below.
        let _ = input.write_all(&line).await;
        let _ = input.flush().await;
    }
    let (mut answer, mut errors) = (Vec::new(), Vec::new());
    let (output, error_output) = (child.stdout.take(), child.stderr.take());
    let reading = async {
        if let Some(output) = output {
            let _ = output.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await;
        }
    };
    let reading_errors = async {
        if let Some(output) = error_output {
            let _ = output.take(ERRORS_BYTES_MAX).read_to_end(&mut errors).await;
        }
    };
    tokio::join!(reading, reading_errors);
    // Before its id is free: children that outlived the helper may write to the folder no more.
    group.end();
    let status = child.wait().await.map_err(failed)?;
    drop(input);
    serde_json::from_slice(&answer).map_err(|_| {
        let text = String::from_utf8_lossy(&errors);
        let text: String = text.trim().chars().take(300).collect();
        let separator = if text.is_empty() { "" } else { ": " };
        format!("the helper process ended with {status} and without an answer{separator}{text}")
    })
}

/// The process group of a helper; killed when it is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.map(Pid::from_raw))
    }

    fn end(&mut self) {
        if let Some(group) = self.0.take() {
            // There is none, as a rule.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_has_the_path_and_named_variables_alone() {
        let variable = |name: &str| match name {
            "HTTPS_PROXY" => Some("http://proxy:3128".into()),
            "AWS_SECRET_ACCESS_KEY" => Some("hidden".into()),
            _ => None,
        };
        let names = ["HTTPS_PROXY".to_owned(), "NO_PROXY".to_owned()];
        let found = environment(&names, variable);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["PATH", "HTTPS_PROXY"]);
    }
}
