//! `kafila var …`

use std::fs;

use test_kit::wait_for;

use crate::command::{TIMEOUT, UNREACHABLE, kafila};
use crate::gateway::Gateway;
use crate::state::FakeState;

/// Scenario 38 of the commands: put, get of one item, a second put, and one with the right index.
#[tokio::test]
async fn scenario_038_a_stored_variable_is_replaced_only_as_it_was_read() {
    let gateway = Gateway::start(FakeState::running()).await;
    let address = &gateway.address;
    let json = kafila("var put a/b k=v").at(address).await.json();
    assert_eq!(
        (&json["Items"]["k"], &json["ModifyIndex"]),
        (&"v".into(), &100.into())
    );
    let said = kafila("var get -item k a/b").at(address).await;
    assert_eq!(said.ended(0).stdout, "v\n");
    let said = kafila("var put a/b k=w").at(address).await;
    said.ended(1).complained(&[
        "creating variable",
        "index is 100",
        "-check-index",
        "-force",
    ]);
    let said = kafila("var put -check-index=100 -out=none a/b k=w")
        .at(address)
        .await;
    said.ended(0);
    let said = kafila("var put -force -out=table a/b k=x")
        .at(address)
        .await;
    said.ended(0)
        .printed(&["Path        = a/b\n", "Check Index = 300\n", "k = x"]);
    let said = kafila("var get -item z a/b").at(address).await;
    said.ended(1).complained(&["no item \"z\"", "it has k"]);
}

#[tokio::test]
async fn stale_reads_of_variables_are_noted_as_fresh() {
    let gateway = Gateway::start(FakeState::running()).await;
    let address = &gateway.address;
    kafila("var put a/b k=v").at(address).await.ended(0);
    for line in ["var list", "var get a/b"] {
        let said = kafila(&format!("{line} -stale")).at(address).await;
        said.ended(0).complained(&["-stale has no effect"]);
        let said = kafila(line).at(address).await;
        assert_eq!(said.ended(0).stderr, "", "{line}");
    }
}

#[tokio::test]
async fn the_shown_form_is_changed_and_stored_again() {
    let gateway = Gateway::start(FakeState::running()).await;
    let address = &gateway.address;
    let folder = tempfile::tempdir().unwrap();
    kafila("var put app user=web password=${x} old=1")
        .at(address)
        .await
        .ended(0);
    for form in ["hcl", "json"] {
        let shown = kafila(&format!("var get -out={form} app"))
            .at(address)
            .await;
        let file = folder.path().join("app");
        fs::write(&file, &shown.ended(0).stdout).unwrap();
        let word = format!("@{}", file.display());
        let json = kafila("var put")
            .arg(word)
            .arg("user=root")
            .arg("old=")
            .at(address)
            .await
            .json();
        assert_eq!(json["Items"]["user"], "root", "{form}");
        assert_eq!(json["Items"]["password"], "${x}", "{form}");
        assert!(json["Items"]["old"].is_null(), "{form}");
    }
}

#[tokio::test]
async fn variables_are_listed_without_their_items_and_purged() {
    let gateway = Gateway::start(FakeState::running()).await;
    let address = &gateway.address;
    let said = kafila("var list -out=table").at(address).await;
    said.ended(0).printed(&["No variables"]);
    for path in ["app/a", "app/b", "web"] {
        kafila(&format!("var put {path} secret=hunter2"))
            .at(address)
            .await
            .ended(0);
    }
    let said = kafila("var list -out=terse app/").at(address).await;
    assert_eq!(said.ended(0).stdout, "app/a\napp/b\n");
    let said = kafila("var list -out=table").at(address).await;
    said.ended(0).printed(&["Namespace", "Last Updated", "web"]);
    let json = kafila("var list").at(address).await.json();
    assert_eq!(json.as_array().unwrap().len(), 3);
    assert!(!json.to_string().contains("hunter2"), "{json}");
    let said = kafila("var purge web").at(address).await;
    said.ended(0)
        .printed(&["Successfully purged variable \"web\"!"]);
    let said = kafila("var get web").at(address).await;
    said.ended(1).complained(&["retrieving variable"]);
}

#[tokio::test]
async fn an_example_is_written_once_and_can_be_stored() {
    let gateway = Gateway::start(FakeState::running()).await;
    let folder = tempfile::tempdir().unwrap();
    for (form, name) in [("hcl", "a.nv.hcl"), ("json", "a.nv.json")] {
        let file = folder.path().join(name);
        let line = format!("var init -out={form}");
        let said = kafila(&line).arg(&file).at(UNREACHABLE).await;
        said.ended(0)
            .printed(&["Example variable specification written to"]);
        let said = kafila(&line).arg(&file).at(UNREACHABLE).await;
        said.ended(1).complained(&["already exists"]);
        let word = format!("@{}", file.display());
        let stored = kafila("var put -force")
            .arg(word)
            .at(&gateway.address)
            .await
            .json();
        assert_eq!(stored["Path"], "nomad/jobs/web");
    }
}

#[tokio::test]
async fn a_lock_without_a_command_is_not_acquired() {
    let said = kafila("var lock a/b").at(UNREACHABLE).await;
    said.ended(1)
        .complained(&["no command: write it after the path"]);
}

#[tokio::test]
async fn a_command_runs_under_its_lock_and_its_exit_code_is_kept() {
    let gateway = Gateway::start(FakeState::running()).await;
    let address = &gateway.address;
    let run = |line: &'static str| kafila("var lock -verbose a/b").arg(line).at(address);
    let said = run("printf '%s' \"$KAFILA_LOCK_PATH\"").await;
    said.ended(0).complained(&[
        "Lock of variable \"a/b\" acquired",
        "Lock of variable \"a/b\" released",
    ]);
    assert_eq!(said.stdout, "a/b");
    run("exit 7").await.ended(7);
    run("kill -9 $$").await.ended(128 + 9);
    let said = kafila("var lock -shell=false a/b /no/such/program")
        .at(address)
        .await;
    said.ended(127).complained(&["/no/such/program"]);
    assert_eq!(gateway.state().lock, None, "it is released in any case");
}

#[tokio::test]
async fn a_command_waits_while_another_holds_the_lock() {
    let state = FakeState {
        lock: Some("other".to_owned()),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let address = gateway.address.clone();
    let waiting = kafila("var lock a/b").arg("echo ran").at(&address);
    let freed = async {
        wait_for("two tries", TIMEOUT, async || {
            (gateway.state().calls("AcquireLock") >= 2).then_some(())
        })
        .await;
        gateway.state().lock = None;
    };
    let (said, ()) = tokio::join!(waiting, freed);
    assert_eq!(said.ended(0).stdout, "ran\n");
}

#[tokio::test]
async fn a_lost_lock_ends_the_command_and_its_children() {
    let gateway = Gateway::start(FakeState::running()).await;
    let address = gateway.address.clone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let line = format!("sleep 600 & echo $! > {}; wait", file.display());
    let running = kafila("var lock -ttl=1s a/b").arg(line).at(&address);
    let child = async {
        let pid = wait_for("the child's pid", TIMEOUT, async || {
            let text = fs::read_to_string(&file).ok()?;
            text.trim().parse::<u32>().ok()
        })
        .await;
        gateway.state().lock = Some("other".to_owned());
        pid
    };
    let (said, pid) = tokio::join!(running, child);
    said.ended(1)
        .complained(&["the lock of variable \"a/b\" was lost"]);
    // A dead child may still wait for a parent that reaps it.
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    assert_eq!(gateway.state().lock.as_deref(), Some("other"));
}

#[tokio::test]
async fn a_killed_lock_ends_the_command_and_its_children() {
    let gateway = Gateway::start(FakeState::running()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    // The shell ignores SIGTERM; its child does not.
    let line = format!(
        "trap 'echo told >> {0}' TERM; sleep 600 & echo $! >> {0}; while true; do sleep 1; done",
        file.display()
    );
    let mut running = kafila("var lock a/b").arg(line).start(&gateway.address);
    let read = || fs::read_to_string(&file).unwrap_or_default();
    let child: u32 = wait_for("the child's pid", TIMEOUT, async || {
        read().trim().parse().ok()
    })
    .await;
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap();
    let shell = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap();
    let shell: u32 = shell.parse().unwrap();
    running.kill().await.unwrap();
    for pid in [child, shell] {
        wait_for("the end of the process", TIMEOUT, async || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        })
        .await;
    }
    assert!(read().contains("told"), "it was told before it was killed");
}

#[tokio::test]
async fn a_command_that_ends_leaves_what_it_started() {
    let gateway = Gateway::start(FakeState::running()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("done");
    let line = format!("(sleep 1; echo > {}) > /dev/null 2>&1 &", file.display());
    let said = kafila("var lock a/b").arg(line).at(&gateway.address).await;
    said.ended(0);
    wait_for("the end of the child", TIMEOUT, async || {
        file.exists().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_locked_variable_is_written_with_its_lock_id_only() {
    let state = FakeState {
        lock: Some("l-1".to_owned()),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let address = &gateway.address;
    let said = kafila("var put a/b k=v").at(address).await;
    said.ended(1).complained(&["locked by l-1"]);
    assert!(!said.stderr.contains("-check-index"), "{}", said.stderr);
    let said = kafila("var put -lock-id=l-1 a/b k=v").at(address).await;
    said.ended(0);
}
