//! The helper's restrictions, seen from inside.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use artifact_fetch::Form;

use crate::place::{Place, message, wanted};
use crate::server::{Fault, Server};

/// Runs the helper with an order. Returns its answer.
pub(crate) fn helper(order: &serde_json::Value, environment: &[(&str, &str)]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_artifact-helper"))
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{order}").unwrap();
    let output = child.wait_with_output().unwrap();
    drop(input);
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Whether this kernel has landlock: without it, the helper refuses with `required`.
fn has_landlock(place: &Place) -> bool {
    let folder = place.task().join("probe");
    fs::create_dir_all(&folder).unwrap();
    let order = serde_json::json!({
        "folder": folder, "user": null, "sandbox": "required", "read_paths": [],
        "work": {"File": {"path": "/etc/hostname", "bytes_max": 1000}},
    });
    !helper(&order, &[]).contains("the kernel has no landlock")
}

#[tokio::test]
async fn the_helper_of_a_git_download_reads_and_writes_only_its_own_files() {
    let place = Place::new();
    if !has_landlock(&place) {
        return;
    }
    // A program in the place of git, which tries what a hostile server could make it do.
    let bin = tempfile::tempdir_in("/opt").or_else(|_| tempfile::tempdir_in("/usr/local"));
    let Ok(bin) = bin else {
        return;
    };
    fs::set_permissions(bin.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    let script = format!(
        "#!/bin/sh\nmkdir -p tree\ncat {0}/secret > tree/secret\necho x > {0}/planted\ncat /proc/1/environ > tree/environ\n\
         id -u > tree/id\nenv > tree/env\nexit 0\n",
        outside.path().display()
    );
    let program = bin.path().join("git");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let folder = place.task().join("folder");
    fs::create_dir(&folder).unwrap();
    let is_root = nix::unistd::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(&folder, Some(65_534), Some(65_534)).unwrap();
    }
    let user = is_root.then_some((65_534, 65_534));
    let order = serde_json::json!({
        "folder": folder, "user": user, "sandbox": "required", "read_paths": [],
        "work": {"Git": {"url": "https://h.test/r", "reference": null, "depth": null,
            "ssh_key": null, "allow_file": false, "insecure": false, "bytes_max": 1 << 20}},
    });
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let answer = helper(&order, &[("PATH", &path)]);
    assert_eq!(answer.trim(), "\"Tree\"");
    let read = |name: &str| fs::read_to_string(folder.join("tree").join(name)).unwrap();
    assert_eq!((read("secret").as_str(), read("environ").as_str()), ("", ""));
    assert!(!outside.path().join("planted").exists());
    if is_root {
        assert_eq!(read("id").trim(), "65534");
    }
    let names: Vec<String> = read("env").lines().filter_map(|it| Some(it.split_once('=')?.0.to_owned())).collect();
    let allowed = ["PATH", "HOME", "TMPDIR", "LC_ALL", "PWD", "SHLVL", "_", "OLDPWD"];
    assert!(names.iter().all(|it| allowed.contains(&it.as_str()) || it.starts_with("GIT_")), "{names:?}");
}

#[tokio::test]
async fn a_file_of_the_node_is_read_with_the_rights_of_the_helper() {
    let place = Place::new();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (open, private) = (folder.path().join("open"), folder.path().join("private"));
    fs::write(&open, "o").unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&private, "p").unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    let artifacts = place.open_with(|config| config.schemes.push("file".to_owned()));
    let of = |path: &std::path::Path| wanted(&format!("file://{}", path.display()));
    artifacts.put(&of(&open), &place.at("", Form::Any)).await.unwrap();
    assert_eq!(place.read("open"), "o");
    if nix::unistd::geteuid().is_root() {
        let error = message(artifacts.put(&of(&private), &place.at("", Form::Any)).await);
        assert!(error.contains("Permission denied"), "{error}");
    }
}

#[tokio::test]
async fn a_helper_ends_when_its_download_is_dropped() {
    let (place, server) = (Place::new(), Server::start());
    server.put("app", "x".repeat(100_000), None);
    server.fail(&[Fault::Slow(Duration::from_millis(200))]);
    let artifacts = place.open();
    let (url, destination) = (wanted(&server.url("app")), place.at("", Form::Any));
    let put = artifacts.put(&url, &destination);
    assert!(tokio::time::timeout(Duration::from_millis(800), put).await.is_err());
    let mark = place.node().display().to_string();
    for _ in 0..100 {
        let found = fs::read_dir("/proc").unwrap().flatten().any(|process| {
            fs::read_link(process.path().join("cwd"))
                .is_ok_and(|cwd| cwd.display().to_string().starts_with(&mark))
        });
        if !found {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the helper still runs");
}
