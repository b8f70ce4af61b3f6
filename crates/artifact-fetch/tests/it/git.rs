//! Repositories, cloned from the file system of the test.

use std::fs;
use std::path::Path;
use std::process::Command;

use artifact_fetch::Form;

use crate::place::{Place, message, wanted};

fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t.test",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with the tag `v1`, and a later commit; readable by all, as the helper is another user.
fn repository() -> (tempfile::TempDir, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    git(folder.path(), &["init", "-q"]);
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/file"), "one").unwrap();
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-qm", "one"]);
    git(folder.path(), &["tag", "v1"]);
    fs::write(folder.path().join("sub/file"), "two").unwrap();
    git(folder.path(), &["commit", "-qam", "two"]);
    let first = git(folder.path(), &["rev-parse", "v1"]);
    (folder, first)
}

fn source(folder: &Path, rest: &str) -> String {
    format!("git::file://{}{rest}", folder.display())
}

#[tokio::test]
async fn a_repository_is_cloned_at_its_reference() {
    let ((repository, commit), place) = (repository(), Place::new());
    let artifacts = place.open_with(|config| config.schemes.push("file".to_owned()));
    for (name, rest, want) in [
        ("head", String::new(), "two"),
        ("tag", "?ref=v1".to_owned(), "one"),
        ("shallow", "?ref=v1&depth=1".to_owned(), "one"),
        ("commit", format!("?ref={commit}&depth=1"), "one"),
    ] {
        let source = wanted(&source(repository.path(), &rest));
        artifacts
            .put(&source, &place.at(name, Form::Any))
            .await
            .unwrap();
        assert_eq!(place.read(&format!("{name}/sub/file")), want, "{name}");
        assert!(place.task().join(name).join(".git").is_dir());
    }
    let part = wanted(&source(repository.path(), "//sub?ref=v1"));
    artifacts
        .put(&part, &place.at("part", Form::Dir))
        .await
        .unwrap();
    assert_eq!(fs::read_dir(place.task().join("part")).unwrap().count(), 1);
    assert_eq!(artifacts.metrics().downloads.get(), 5);
}

#[tokio::test]
async fn failures_of_git_have_its_message_and_no_password() {
    let ((repository, _), place) = (repository(), Place::new());
    let artifacts = place.open_with(|config| config.schemes.push("file".to_owned()));
    let missing = wanted(&source(repository.path(), "?ref=no-such"));
    let error = message(artifacts.put(&missing, &place.at("x", Form::Any)).await);
    assert!(
        error.contains("git failed:") && error.contains("no-such"),
        "{error}"
    );
    let other = Place::new();
    let one = other.open_with(|config| config.attempts = 1);
    let private = wanted("git::http://user:hidden@127.0.0.1:9/r.git");
    let error = message(one.put(&private, &place.at("x", Form::Any)).await);
    assert!(
        error.contains("git failed:") && !error.contains("hidden"),
        "{error}"
    );
    let file = wanted(&source(repository.path(), ""));
    let error = message(artifacts.put(&file, &place.at("x", Form::File)).await);
    assert!(error.contains("is a directory"), "{error}");
    let error = message(one.put(&file, &place.at("x", Form::Any)).await);
    assert!(error.contains("does not allow \"file\""), "{error}");
}

#[tokio::test]
async fn links_of_a_repository_that_leave_are_refused() {
    let ((repository, _), place) = (repository(), Place::new());
    std::os::unix::fs::symlink("/etc/passwd", repository.path().join("sub/link")).unwrap();
    git(repository.path(), &["add", "."]);
    git(repository.path(), &["commit", "-qm", "link"]);
    let artifacts = place.open_with(|config| config.schemes.push("file".to_owned()));
    let source = wanted(&source(repository.path(), ""));
    let error = message(artifacts.put(&source, &place.at("x", Form::Any)).await);
    assert!(
        error.contains("sub/link") && error.contains("leads out"),
        "{error}"
    );
}

#[tokio::test]
async fn a_node_without_git_says_so() {
    let ((repository, _), place) = (repository(), Place::new());
    let artifacts = place.open_with(|config| {
        config.schemes.push("file".to_owned());
        // The helper's PATH is the agent's, unless a setting names it.
        config.helper = Vec::new();
    });
    let _ = artifacts;
    let order = serde_json::json!({
        "folder": place.node().join("work"), "user": null, "sandbox": "off", "read_paths": [],
        "work": {"Git": {"url": source(repository.path(), ""), "reference": null, "depth": null,
            "ssh_key": null, "allow_file": true, "insecure": false, "bytes_max": 1 << 20}},
    });
    let answer = crate::sandbox::helper(&order, &[("PATH", "/nowhere")]);
    assert!(answer.contains("no program `git`"), "{answer}");
}
