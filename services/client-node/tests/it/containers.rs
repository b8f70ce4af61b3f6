//! Tasks of the driver `docker`, from their assignment to their end.
//!
//! Without a Docker Engine they are skipped with a notice, unless `KAFILA_REQUIRE_CONTAINERS=1` is set.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use model::{ClientStatus, Job, WorkloadIdentity};
use test_kit::builders::template;
use test_kit::wait_for;

use crate::gateway::LIMIT;
use crate::node::{Place, Running, service, start};

/// Image of this machine's shell.
pub(crate) const IMAGE: &str = "kafila-agent-test:1";
const IMPORT: &str = r#"
    files="/bin/sh /bin/sleep"
    libraries=$(for file in $files; do ldd $file; done | grep -o '/[^ ]*')
    earlier=$(docker images --quiet "$1")
    tar --create --dereference --directory=/ $(printf '%s\n' $files $libraries | sort -u | cut -c2-) |
        docker import - "$1"
    # Without its name it would stay on the machine for ever.
    [ -z "$earlier" ] || docker rmi "$earlier" || true
"#;

pub(crate) fn has_engine() -> bool {
    let asked = Command::new("docker").arg("version").output();
    let found = asked.is_ok_and(|answer| answer.status.success());
    let is_required = std::env::var("KAFILA_REQUIRE_CONTAINERS").is_ok();
    assert!(found || !is_required, "no Docker Engine");
    if !found {
        eprintln!("skipped: no Docker Engine");
    }
    found
}

pub(crate) fn docker(arguments: &[&str]) -> String {
    let run = Command::new("docker").args(arguments).output().unwrap();
    assert!(run.status.success(), "docker {arguments:?}: {run:?}");
    String::from_utf8(run.stdout).unwrap().trim().to_owned()
}

pub(crate) fn import_image() {
    let imported = Command::new("sh")
        .args(["-ec", IMPORT, "sh", IMAGE])
        .output();
    assert!(imported.unwrap().status.success());
}

/// Removes a node's containers, also after a failed test.
pub(crate) struct Containers(pub(crate) String);

impl Containers {
    pub(crate) fn names(&self) -> String {
        let filter = format!("label=io.kafila.node_id={}", self.0);
        docker(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"])
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        for name in self.names().lines() {
            let _ = Command::new("docker").args(["rm", "-f", name]).output();
        }
    }
}

pub(crate) fn container(script: &str) -> Job {
    let mut job = service("");
    let task = &mut job.task_groups[0].tasks[0];
    task.driver = "docker".to_owned();
    let config = serde_json::json!({"image": IMAGE, "command": "/bin/sh", "args": ["-c", script]});
    task.config = config.as_object().unwrap().clone();
    task.kill_timeout = Duration::from_secs(60);
    job
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_028_a_container_outlives_the_agent_and_ends_with_its_allocation() {
    if !has_engine() {
        return;
    }
    import_image();
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let record = cluster.facts().registrations.last().cloned().unwrap();
    assert!(record.drivers["docker"].healthy);
    assert_eq!(record.attributes["driver.docker"], "1");
    let containers = Containers(record.id.to_string());

    let script = "trap 'echo bye; exit 0' TERM; echo $NOMAD_TASK_DIR; while :; do sleep 0.1; done";
    let id = cluster.assign(1, &container(script));
    cluster.until(id, ClientStatus::Running).await;
    let name = format!("server-{id}");
    assert_eq!(containers.names(), name);
    place.said(id, "/local\n").await;
    let started_at = || docker(&["inspect", "--format", "{{.State.StartedAt}}", &name]);
    let before = started_at();

    node.stop().await;
    let streams = cluster.facts().seen.len();
    let node = Running::start(place.config(&[&gateway.address])).await;
    cluster
        .until_fact("another stream", |facts| facts.seen.get(streams).copied())
        .await;
    assert_eq!(started_at(), before, "the same container");
    cluster.stop(id);
    let client = cluster.until(id, ClientStatus::Complete).await;
    assert_eq!(client.task_states["server"].restarts, 0);
    assert_eq!(place.said(id, "bye").await, "/local\nbye\n");
    wait_for("the container to be removed", LIMIT, async || {
        containers.names().is_empty().then_some(())
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_the_image_reads_the_secrets_of_its_task_and_a_user_of_the_node_does_not() {
    if !has_engine() {
        return;
    }
    import_image();
    let place = Place::new();
    // As a data directory usually is: other users may pass.
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    let (cluster, _gateway, node) = start(&place).await;
    let record = cluster.facts().registrations.last().cloned().unwrap();
    let _containers = Containers(record.id.to_string());
    cluster.facts().token = "a.b.c".to_owned();
    let script = "for file in /secrets/*; do read -r line < $file; echo $line; done; \
                  echo mine > /secrets/mine; echo done; sleep 600";
    // Without a user the image decides, and its program may change it: root reads everything anyway.
    // The mode is the token file's; `None`: the task has no identity, by which the agent knows its user.
    for (number, user, mode) in [
        (1, "1000:1000", None),
        (2, "1000:1000", Some(0o600)),
        (3, "4711", Some(0o600)),
        (4, "", Some(0o644)),
    ] {
        let mut job = container(script);
        let task = &mut job.task_groups[0].tasks[0];
        task.user = user.to_owned();
        task.templates = vec![template("secrets/key", "rendered\n")];
        let identity = WorkloadIdentity {
            name: WorkloadIdentity::DEFAULT_NAME.to_owned(),
            file: true,
            ..WorkloadIdentity::default()
        };
        task.identities = mode.map(|_| identity).into_iter().collect();
        let id = cluster.assign(number, &job);
        let said = place.said(id, "done").await;
        let token = if mode.is_some() { "a.b.c\n" } else { "" };
        assert_eq!(said, format!("rendered\n{token}done\n"), "user {user:?}");
        let task = place.path().join(format!("alloc/{id}/server"));
        let mode_of = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        if let Some(mode) = mode {
            assert_eq!(mode_of(&task.join("secrets/nomad_token")), mode);
        }
        assert_eq!(mode_of(&task.join("secrets")), 0o777);
        let key = task.join("secrets/key");
        let read = Command::new("cat").arg(&key).uid(1_000).gid(1_000).output();
        assert!(!read.unwrap().status.success(), "the node's user 1000");
        cluster.stop(id);
    }
    node.stop().await;
}
