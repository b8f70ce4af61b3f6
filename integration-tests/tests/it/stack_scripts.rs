//! The scripts of the stack on one machine, with a stand-in for Docker that notes its arguments.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use integration_tests::binary;

/// Notes the arguments of a call, one on each line, and plays Docker with Compose v2: every file in `$REPLICAS` is a
/// container of a service, with its state, its image and its port. `run` does what `$RUN` says, `up` what `$UP` says;
/// without it, `up` starts what is stopped and adds containers of `$NEW_IMAGE`. Every image is there whose name does
/// not match `$NO_IMAGE`.
const DOCKER: &str = r#"#!/usr/bin/env bash
printf '%s\n' "$@" >>"$CALLS"
echo -- >>"$CALLS"
last=${*: -1}

up() {
    local file scale=0 word
    for word in "$@"; do [[ $word != *=* ]] || scale=${word#*=}; done
    ((scale > 0)) || return
    for file in "$REPLICAS"/*; do [[ ! -e $file ]] || sed -i 's/^exited/running/' "$file"; done
    while (($(ls "$REPLICAS" | wc -l) < scale)); do echo "running $NEW_IMAGE" >"$REPLICAS/new$RANDOM"; done
}

case $1 in
    compose)
        case $2 in
            config) [[ ${3:-} == --services ]] && echo api-gateway || printf '%s\n' "$CONFIG" ;;
            ps)
                [[ $4 != etcd-* ]] || { echo "$4"; exit; }
                for file in "$REPLICAS"/*; do
                    [[ ! -e $file ]] || { [[ $3 != -aq && $(<"$file") != running* ]] || basename "$file"; }
                done ;;
            up) if [[ -n $UP ]]; then eval "$UP"; else up "$@"; fi ;;
        esac
        exit 0 ;;
    image | pull)
        [[ -z ${NO_IMAGE:-} || $last != $NO_IMAGE ]] || exit 1
        case $* in
            *.Id*) echo "id of $last" ;;
            *.User*) echo "$(id -u):$(id -g)" ;;
        esac ;;
    inspect)
        read -r state image <"$REPLICAS/$last"
        case $3 in
            *.Status*) echo "$state False" ;;
            *.Running*) [[ $state == running ]] && echo true || echo false ;;
            *) echo "$image" ;;
        esac ;;
    port) sed -n 's/^running .* /127.0.0.1:/p' "$REPLICAS/$2" ;;
    start | stop | rm)
        for name in "${@:2}"; do
            file=$REPLICAS/$name
            [[ -e $file ]] || continue
            case $1 in
                start) sed -i 's/^exited/running/' "$file" ;;
                stop) sed -i 's/^running/exited/' "$file" ;;
                rm) rm "$file" ;;
            esac
        done ;;
    run) eval "$RUN" ;;
esac
"#;

/// Runs the script of `docker run` on this machine, with the folder of the secrets in place of the mounted one.
const RUN_HERE: &str = r#"
for word in "$@"; do
    [[ $option != --env ]] || export "$word"
    option=$word
done
case $* in
    *'--entrypoint id '*) id -g ;;
    *' -s') sed "s|/secrets|$KAFILA_SECRETS|g" | sh -s ;;
    *) sh -c "${last//\/secrets/$KAFILA_SECRETS}" ;;
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

/// The id of the image that [`CONFIG`] names.
const NEW_IMAGE: &str = "id of kafila:0.2.0";

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
        fs::create_dir_all(directory.path().join("replicas"))?;
        Ok(Self { directory })
    }

    /// Adds a container of a service: its state, its image, and maybe its port.
    fn replica(&self, name: &str, facts: &str) -> Result<()> {
        Ok(fs::write(
            self.path("replicas").join(name),
            format!("{facts}\n"),
        )?)
    }

    /// Returns the containers with their facts.
    fn replicas(&self) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(self.path("replicas"))? {
            let entry = entry?;
            let facts = fs::read_to_string(entry.path())?.trim().to_owned();
            found.insert(entry.file_name().to_string_lossy().into_owned(), facts);
        }
        Ok(found)
    }

    /// Runs `compose-secrets` with the `kafila` of this build.
    fn make_secrets(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = self.command("compose-secrets", RUN_HERE);
        Ok(command.args(arguments).output()?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, script: &str, run: &str) -> Command {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut paths = vec![self.path("bin")];
        paths.extend(binary::kafila().parent().map(Path::to_owned));
        paths.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        let paths = std::env::join_paths(paths).expect("no path has a colon");
        let mut command = Command::new(root.join("scripts").join(script));
        command
            .current_dir(self.path("work"))
            .env("PATH", paths)
            .env("CALLS", self.path("calls"))
            .env("REPLICAS", self.path("replicas"))
            .env("NEW_IMAGE", NEW_IMAGE)
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
fn the_command_of_a_stack_without_images_names_the_script_that_builds_them() -> Result<()> {
    let stand = Stand::new()?;
    let output = stand
        .command("compose-kafila", "exit 0")
        .args(["job", "status"])
        .env("KAFILA_TAG", "nope")
        .env("NO_IMAGE", "*:nope")
        .output()?;
    let said = text(&output);
    ensure!(output.status.code() == Some(1), "{said}");
    for part in ["there is no image", ":nope", "scripts/build-images"] {
        ensure!(said.contains(part), "{part}: {said}");
    }
    ensure!(!stand.calls().contains("run\n"), "{}", stand.calls());
    Ok(())
}

#[test]
fn a_restore_says_why_a_file_is_no_snapshot() -> Result<()> {
    let stand = Stand::new()?;
    let empty = stand.path("empty.db");
    fs::write(&empty, "")?;
    for (file, problem) in [
        (stand.path("nope.db"), "does not exist"),
        (stand.path("work"), "is no file"),
        (empty, "is empty"),
    ] {
        let output = stand
            .command("compose-restore", "exit 0")
            .arg(&file)
            .output()?;
        let said = text(&output);
        ensure!(output.status.code() == Some(2), "{said}");
        let expected = format!("{} {problem}", file.display());
        ensure!(said.contains(&expected), "{expected}: {said}");
    }
    ensure!(stand.calls().is_empty(), "{}", stand.calls());
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
        ("compose-restore", "--help", 0),
        ("check-containers", "--help", 0),
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
    stand.replica("c1c1c1c1c1c1c1c1", "running old")?;
    let no_container = "echo 'no space left on device' >&2; exit 1";
    let output = stand
        .command("compose-roll", "echo Kafila v0.2.0")
        .env("UP", no_container)
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
        ("", "*", "there is no image kafila:0.2.0"),
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
        stand.replica("c1c1c1c1c1c1c1c1", "running old")?;
        let output = stand
            .command("compose-roll", run)
            .env("NO_IMAGE", no_image)
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

/// `up` starts a container that is there, whatever its image.
#[test]
fn a_roll_replaces_containers_that_do_not_run_as_well() -> Result<()> {
    let stand = Stand::new()?;
    stand.replica("c1c1c1c1c1c1c1c1", "running old")?;
    stand.replica("c2c2c2c2c2c2c2c2", "exited old")?;
    let output = stand
        .command("compose-roll", "echo Kafila v0.2.0")
        .arg("api-gateway")
        .output()?;
    let said = text(&output);
    ensure!(output.status.success(), "{said}");
    for part in ["replaced c1c1c1c1c1c1", "replaced c2c2c2c2c2c2"] {
        ensure!(said.contains(part), "{part}: {said}");
    }
    let replicas = stand.replicas()?;
    let new = format!("running {NEW_IMAGE}");
    ensure!(replicas.len() == 2, "{replicas:?}: {said}");
    ensure!(
        replicas.values().all(|facts| *facts == new),
        "{replicas:?}: {said}"
    );
    Ok(())
}

#[test]
fn a_roll_fails_if_the_replacement_has_another_image_or_is_missing() -> Result<()> {
    for (up, part) in [
        ("", "was replaced by"),
        ("true", "instead of c1c1c1c1c1c1 and others it has: none"),
    ] {
        let stand = Stand::new()?;
        stand.replica("c1c1c1c1c1c1c1c1", "running old")?;
        let output = stand
            .command("compose-roll", "echo Kafila v0.2.0")
            .env("NEW_IMAGE", "another")
            .env("UP", up)
            .arg("api-gateway")
            .output()?;
        let said = text(&output);
        ensure!(output.status.code() == Some(1), "{said}");
        ensure!(said.contains(part), "{part}: {said}");
        ensure!(!said.contains(": replaced c1"), "{said}");
    }
    Ok(())
}

/// Replicas that were replaced have higher numbers than 1 and 2, so the number of a port is asked of each container.
#[test]
fn the_command_of_the_stack_asks_for_ports_that_docker_chose() -> Result<()> {
    let stand = Stand::new()?;
    let ask = || {
        stand
            .command("compose-kafila", "exit 0")
            .args(["job", "status"])
            .env("KAFILA_PORTS", "")
            .output()
    };
    let said = text(&ask()?);
    ensure!(
        said.contains("no gateway of the stack has a port"),
        "{said}"
    );
    stand.replica("gateway-5", "running image 32771")?;
    stand.replica("gateway-6", "exited image 32772")?;
    stand.replica("gateway-7", "running image 32773")?;
    let output = ask()?;
    ensure!(output.status.success(), "{}", text(&output));
    let gateways = "KAFILA_ADDR=https://127.0.0.1:32771,https://127.0.0.1:32773";
    let calls = stand.calls();
    ensure!(calls.lines().any(|line| line == gateways), "{calls}");
    Ok(())
}

/// docker-compose 1.29 and Compose v2 agree on these lines.
#[test]
fn variables_are_read_as_compose_reads_them() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let lines = "# A=comment\nA=\"0.2.0\"\nB='a \"b\"'\nC=a#b # comment\nexport D=x y  \nE=\n F = 1\nF=2\r\n\
                 G=\"a \\\"b\\\" # c\" # d\n#H=1\nI=file\nJ=file\nK=last";
    fs::write(directory.path().join(".env"), lines)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/compose-variables");
    let ask = r#"set -euo pipefail
        . "$0"
        for name in A B C D E F G H I J K; do echo "$name<$(setting $name || echo unset)>"; done
        variable E default; variable H default; variable J default; variable K default"#;
    let output = Command::new("bash")
        .args(["-c", ask])
        .arg(script)
        .current_dir(directory.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("I", "environment")
        .env("J", "")
        .output()?;
    let expected = "A<0.2.0>\nB<a \"b\">\nC<a#b>\nD<x y>\nE<>\nF<2>\nG<a \"b\" # c>\nH<unset>\nI<environment>\n\
                    J<>\nK<last>\ndefaultdefaultdefaultlast";
    ensure!(text(&output) == expected, "{}", text(&output));
    Ok(())
}

#[test]
fn a_restore_starts_only_what_ran_before() -> Result<()> {
    let stand = Stand::new()?;
    stand.replica("ran", "running image")?;
    stand.replica("stopped-on-purpose", "exited image")?;
    let snapshot = stand.path("snapshot.db");
    fs::write(&snapshot, "snapshot")?;
    let output = stand
        .command("compose-restore", "exit 0")
        .arg(&snapshot)
        .output()?;
    let said = text(&output);
    ensure!(output.status.success(), "{said}");
    ensure!(stand.calls().contains("stop\n--time\n20\nran\n"), "{said}");
    let replicas = stand.replicas()?;
    ensure!(replicas["ran"] == "running image", "{replicas:?}");
    ensure!(
        replicas["stopped-on-purpose"] == "exited image",
        "{replicas:?}"
    );
    Ok(())
}

#[test]
fn secrets_are_not_made_without_one_of_the_images() -> Result<()> {
    for image in ["kafila:local", "kafila-client-node:local", "an-etcd:1"] {
        let stand = Stand::new()?;
        let output = stand
            .command("compose-secrets", RUN_HERE)
            .env("KAFILA_TAG", "local")
            .env("ETCD_IMAGE", "an-etcd:1")
            .env("NO_IMAGE", image)
            .output()?;
        let said = text(&output);
        ensure!(output.status.code() == Some(1), "{image}: {said}");
        let reason = format!("there is no image {image}");
        ensure!(said.contains(&reason), "{image}: {said}");
        let calls = stand.calls();
        ensure!(!calls.lines().any(|line| line == "run"), "{calls}");
    }
    Ok(())
}

/// docs/operations.md advises to keep `secrets/ca` elsewhere. Services do not trust certificates of another authority.
#[test]
fn no_authority_replaces_one_that_was_moved_away() -> Result<()> {
    let stand = Stand::new()?;
    let said = text(&stand.make_secrets(&[])?);
    let folder = stand.path("secrets");
    let (authority, of_etcd) = (folder.join("ca"), folder.join("ca/etcd"));
    ensure!(of_etcd.join("kafila-ca-key.pem").is_file(), "{said}");
    let certificate = folder.join("api-gateway/cert.pem");
    let first = fs::read(&certificate)?;

    let refused = |arguments: &[&str], missing: &Path, name: &str| -> Result<()> {
        let output = stand.make_secrets(arguments)?;
        let said = text(&output);
        ensure!(output.status.code() == Some(1), "{arguments:?}: {said}");
        let advice = format!("bring {} back", authority.display());
        for part in [&*missing.to_string_lossy(), advice.as_str(), name] {
            ensure!(said.contains(part), "{part}: {said}");
        }
        ensure!(!missing.exists(), "{} was made", missing.display());
        ensure!(fs::read(&certificate)? == first, "{arguments:?}: renewed");
        Ok(())
    };

    let safe = stand.path("safe");
    fs::rename(&authority, &safe)?;
    // Needs no authority.
    let keyring_key = folder.join("api-gateway/keyring_key");
    fs::remove_file(&keyring_key)?;
    let output = stand.make_secrets(&[])?;
    ensure!(output.status.success(), "{}", text(&output));
    ensure!(keyring_key.is_file(), "{}", text(&output));
    ensure!(!authority.exists(), "an authority was made");
    refused(&["--renew"], &authority, "every certificate")?;
    fs::remove_file(folder.join("operator/cert.pem"))?;
    refused(&[], &authority, "operator/cert.pem")?;

    fs::rename(&safe, &authority)?;
    fs::rename(&of_etcd, &safe)?;
    let output = stand.make_secrets(&[])?;
    ensure!(output.status.success(), "{}", text(&output));
    refused(&["--renew"], &of_etcd, "every certificate of etcd")?;
    fs::remove_file(folder.join("etcd-2/cert.pem"))?;
    refused(&[], &of_etcd, "etcd-2/cert.pem")?;

    fs::rename(&safe, &of_etcd)?;
    let output = stand.make_secrets(&["--renew"])?;
    ensure!(output.status.success(), "{}", text(&output));
    ensure!(fs::read(&certificate)? != first, "nothing was renewed");
    let trusted = fs::read(folder.join("api-gateway/ca.pem"))?;
    let authority = fs::read(authority.join("kafila-ca.pem"))?;
    ensure!(trusted == authority, "another authority is trusted");
    Ok(())
}
