//! The scripts of the stack on one machine, with a stand-in for Docker that notes its arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Notes the arguments of a call, one on each line, and does what `$RUN` says for `run`, `$UP` for `up`. It has
/// the image of api-gateway unless `$NO_IMAGE` is set.
const DOCKER: &str = r#"#!/usr/bin/env bash
printf '%s\n' "$@" >>"$CALLS"
echo -- >>"$CALLS"
case $1 in
    compose)
        case $2 in
            config) [[ ${3:-} == --services ]] && echo api-gateway || printf '%s\n' "$CONFIG" ;;
            ps) echo "${REPLICA:-}" ;;
            up) eval "$UP" ;;
        esac
        exit 0 ;;
    image | pull) [[ -z ${NO_IMAGE:-} ]] ;;
    run) eval "$RUN" ;;
esac
"#;

/// The stack as Compose prints it.
const CONFIG: &str = "networks:
  default: {}
services:
  a-service:
    image: other:1
  api-gateway:
    command:
    - api-gateway
    image: kafila:0.2.0
    labels:
      image: none
version: '3.9'";

/// A directory of its own with the stand-in and the operator's certificate.
struct Stand {
    directory: tempfile::TempDir,
}

impl Stand {
    fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let docker = directory.path().join("bin/docker");
        fs::create_dir_all(directory.path().join("bin"))?;
        fs::write(&docker, DOCKER)?;
        fs::set_permissions(&docker, fs::Permissions::from_mode(0o755))?;
        fs::create_dir_all(directory.path().join("secrets/operator"))?;
        fs::write(directory.path().join("secrets/operator/key.pem"), "key")?;
        fs::create_dir_all(directory.path().join("work"))?;
        Ok(Self { directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, script: &str, run: &str) -> Command {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(root.join("scripts").join(script));
        command
            .current_dir(self.path("work"))
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("CALLS", self.path("calls"))
            .env("RUN", run)
            .env("UP", "")
            .env("CONFIG", CONFIG)
            .env("KAFILA_SECRETS", self.path("secrets"))
            .stdin(Stdio::null());
        command
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.path("calls")).unwrap_or_default()
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}

#[test]
fn the_command_of_the_stack_gets_variables_signals_and_all_gateways() -> Result<()> {
    let stand = Stand::new()?;
    let output = stand
        .command("compose-kafila", "exit 3")
        .args(["job", "run", "web.hcl"])
        .env("NOMAD_VAR_greeting", "Salaam")
        .env("KAFILA_PORTS", "5646-5647")
        .output()?;
    ensure!(output.status.code() == Some(3), "{}", text(&output));
    let calls = stand.calls();
    for word in [
        "--init",
        "--read-only",
        "NOMAD_VAR_greeting",
        "KAFILA_ADDR=https://127.0.0.1:5646,https://127.0.0.1:5647",
    ] {
        ensure!(calls.lines().any(|line| line == word), "{word}: {calls}");
    }
    Ok(())
}

/// Docker's client does not end the container of a command whose reader has gone.
#[test]
fn the_command_of_the_stack_leaves_no_container_behind() -> Result<()> {
    let stand = Stand::new()?;
    let run = "printf 'line\\n'; printf 'line\\n'; exit 1";
    let output = stand
        .command("compose-kafila", run)
        .arg("monitor")
        .output()?;
    ensure!(output.status.code() == Some(1), "{}", text(&output));
    let calls = stand.calls();
    let mut words = calls.lines().skip_while(|word| *word != "--name");
    let name = words.nth(1).context("the container has no name")?;
    ensure!(calls.contains(&format!("kill\n{name}\n")), "{calls}");
    Ok(())
}

#[test]
fn files_that_the_container_does_not_see_are_refused() -> Result<()> {
    let stand = Stand::new()?;
    for words in [
        vec!["operator", "snapshot", "save", "/root/backup.db"],
        vec!["operator", "debug", "-output=/var/tmp/debug.tgz"],
        vec!["var", "put", "@/root/variable.hcl"],
        vec!["job", "plan", "../web.hcl"],
    ] {
        let output = stand
            .command("compose-kafila", "exit 0")
            .args(&words)
            .output()?;
        let said = text(&output);
        ensure!(output.status.code() == Some(1), "{words:?}: {said}");
        ensure!(
            said.contains("is not below the current directory"),
            "{said}"
        );
    }
    let inside = stand.path("work").join("backup.db");
    let save = ["operator", "snapshot", "save"];
    let mut command = stand.command("compose-kafila", "exit 0");
    ensure!(command.args(save).arg(inside).status()?.success());
    // The words of a command in a task are not files of this machine.
    for words in [
        vec!["alloc", "exec", "web", "/bin/sh"],
        vec!["alloc", "fs", "4523c989", "/"],
        vec!["fs", "4523c989", "/web/local"],
    ] {
        let status = stand
            .command("compose-kafila", "exit 0")
            .args(&words)
            .status()?;
        ensure!(status.success(), "{words:?}");
    }
    Ok(())
}

#[test]
fn help_and_wrong_arguments_of_the_scripts_touch_no_container() -> Result<()> {
    let stand = Stand::new()?;
    for (script, argument, code) in [
        ("compose-roll", "--help", 0),
        ("compose-roll", "nosuch", 2),
        ("compose-secrets", "--help", 0),
        ("compose-secrets", "--renwe", 2),
        ("build-images", "--help", 0),
        ("build-images", "--binary", 2),
        ("build-images", "--nope", 2),
    ] {
        let output = stand.command(script, "exit 0").arg(argument).output()?;
        let said = text(&output);
        ensure!(
            output.status.code() == Some(code),
            "{script} {argument}: {said}"
        );
        ensure!(!said.is_empty() && !said.contains("pipefail"), "{said}");
    }
    let calls = stand.calls();
    let touched = ["stop\n", "rm\n", "run\n", "build\n"];
    ensure!(!touched.iter().any(|call| calls.contains(call)), "{calls}");
    Ok(())
}

#[test]
fn a_roll_says_why_no_container_replaces_the_stopped_one() -> Result<()> {
    let stand = Stand::new()?;
    let no_container = "echo 'no space left on device' >&2; exit 1";
    let output = stand
        .command("compose-roll", "echo Kafila v0.2.0")
        .env("UP", no_container)
        .env("REPLICA", "c1c1c1c1c1c1c1c1")
        .arg("api-gateway")
        .output()?;
    let said = text(&output);
    ensure!(output.status.code() == Some(1), "{said}");
    for part in [
        "kafila:0.2.0: Kafila v0.2.0",
        "no space left on device",
        "no container replaces c1c1c1c1c1c1 of api-gateway",
        "up -d --no-deps --scale api-gateway=1 api-gateway",
    ] {
        ensure!(said.contains(part), "{part}: {said}");
    }
    Ok(())
}

#[test]
fn a_roll_to_an_image_that_does_not_run_stops_no_container() -> Result<()> {
    for (run, no_image, reason) in [
        ("", "1", "there is no image kafila:0.2.0"),
        (
            "echo 'exec format error' >&2; exit 1",
            "",
            "the image kafila:0.2.0 does not answer `version`: exec format error",
        ),
        (
            "echo 'etcd Version: 3.5.21'",
            "",
            "the image kafila:0.2.0 does not answer `version`: etcd Version",
        ),
    ] {
        let stand = Stand::new()?;
        let output = stand
            .command("compose-roll", run)
            .env("NO_IMAGE", no_image)
            .env("REPLICA", "c1c1c1c1c1c1c1c1")
            .arg("api-gateway")
            .output()?;
        let said = text(&output);
        ensure!(output.status.code() == Some(1), "{said}");
        for part in ["nothing was stopped", reason, "scripts/build-images"] {
            ensure!(said.contains(part), "{part}: {said}");
        }
        let calls = stand.calls();
        ensure!(!calls.contains("stop\n"), "{calls}");
        ensure!(calls.contains("kafila:0.2.0\n"), "{calls}");
        ensure!(!calls.contains("other:1"), "{calls}");
    }
    Ok(())
}
