//! Scripts inside tasks: of templates whose data changes, and of service checks.

use std::time::Duration;

use model::job::RestartMode;
use model::service::{CheckRestart, CheckType, ServiceCheck};
use model::template::{ChangeMode, ChangeScript, TemplateWait};
use model::{AllocId, ClientStatus, Job, Service};
use proto::internal::v1::NodeChecksRequest;
use proto::internal::v1::node_operations_client::NodeOperationsClient;
use proto::v1::AllocationCheck;
use test_kit::{builders, wait_for};

use crate::containers::{Containers, container, has_engine, import_image};
use crate::gateway::{Cluster, Facts, LIMIT};
use crate::node::{Place, Running, service, start, stored};

const PATH: &str = "nomad/jobs/web";

/// A task with a file of a variable, whose change runs a shell script.
fn with_script(script: &str, fail_on_error: bool) -> Job {
    let mut job = service("echo up; sleep 600");
    let task = &mut job.task_groups[0].tasks[0];
    let mut template = builders::template(
        "local/level",
        "{{ with nomadVar `nomad/jobs/web` }}{{ .level }}{{ end }}",
    );
    template.change_mode = ChangeMode::Script;
    template.change_script = Some(ChangeScript {
        command: "/bin/sh".to_owned(),
        args: vec![
            "-c".to_owned(),
            script.to_owned(),
            "${NOMAD_TASK_NAME}".to_owned(),
        ],
        timeout: Duration::from_secs(5),
        fail_on_error,
    });
    template.splay = Duration::ZERO;
    template.wait = Some(TemplateWait {
        min: Duration::ZERO,
        max: Duration::ZERO,
    });
    task.templates = vec![template];
    stored(job)
}

fn set_level(cluster: &Cluster, level: &str) {
    let items = [("level".to_owned(), level.to_owned())].into();
    cluster.facts().variables.insert(PATH.to_owned(), items);
}

/// Waits for an event of the task that contains `part`.
async fn event(cluster: &Cluster, id: AllocId, part: &str) -> String {
    let find = |facts: &Facts| {
        let state = facts.reported.get(&id)?.task_states.get("server")?;
        let texts = state.events.iter();
        let mut texts = texts.map(|event| format!("{}: {}", event.event_type, event.message));
        texts.find(|text| text.contains(part))
    };
    cluster.until_fact(part, find).await
}

fn types(cluster: &Cluster, id: AllocId) -> Vec<String> {
    let state = cluster.reported(id).task_states["server"].clone();
    let events = state.events.into_iter();
    events.map(|event| event.event_type).collect()
}

#[tokio::test]
async fn a_changed_template_runs_its_script_inside_the_task() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    set_level(&cluster, "info");
    let script = "echo \"$0 $NOMAD_JOB_ID $(cat local/level)\" >> ../alloc/ran; echo a secret";
    let id = cluster.assign(1, &with_script(script, false));
    place.said(id, "up").await;
    set_level(&cluster, "debug");
    let told = event(&cluster, id, "Template: ").await;
    assert_eq!(
        told,
        "Template: Template \"local/level\" has changed: ran /bin/sh"
    );
    let ran = place.path().join(format!("alloc/{id}/alloc/ran"));
    assert_eq!(std::fs::read_to_string(ran).unwrap(), "server web debug\n");
    assert_eq!(place.output(id), "up\n", "the task goes on");
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_script_that_fails_ends_the_task_only_where_the_job_says_so() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    set_level(&cluster, "info");
    let lenient = cluster.assign(1, &with_script("exit 3", false));
    let mut job = with_script("exit 3", true);
    job.id = "strict".to_owned();
    let strict = cluster.assign(2, &job);
    for id in [lenient, strict] {
        place.said(id, "up").await;
    }
    set_level(&cluster, "debug");
    let failed = "has changed, but /bin/sh failed with exit code 3";
    for id in [lenient, strict] {
        event(&cluster, id, failed).await;
    }
    cluster.until(strict, ClientStatus::Failed).await;
    let told = event(&cluster, strict, "Not Restarting").await;
    assert!(
        told.contains("\"local/level\" failed, and its fail_on_error"),
        "{told}"
    );
    assert!(!types(&cluster, strict).contains(&"Restarting".to_owned()));
    assert_eq!(cluster.status(lenient), Some(ClientStatus::Running));
    cluster.stop(lenient);
    cluster.until(lenient, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_script_that_does_not_end_is_killed() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    set_level(&cluster, "info");
    let mut job = with_script("sleep 603 & sleep 604", false);
    let script = job.task_groups[0].tasks[0].templates[0]
        .change_script
        .as_mut();
    script.unwrap().timeout = Duration::from_millis(300);
    let id = cluster.assign(1, &job);
    place.said(id, "up").await;
    set_level(&cluster, "debug");
    event(&cluster, id, "it did not end within 0.3s and was killed").await;
    let is_of_script = |pid: &i32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("603") || line.contains("604")
    };
    wait_for("the script to be gone", LIMIT, async || {
        (!place.processes().iter().any(is_of_script)).then_some(())
    })
    .await;
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}

/// A group's service with a script that runs in the task `server`.
fn checked(task_script: &str, check_script: &str, restart: Option<CheckRestart>) -> Job {
    let mut job = service(task_script);
    let group = &mut job.task_groups[0];
    group.services = vec![Service {
        task: "server".to_owned(),
        checks: vec![ServiceCheck {
            name: "ready".to_owned(),
            check_type: CheckType::Script,
            command: "/bin/sh".to_owned(),
            args: vec!["-c".to_owned(), check_script.to_owned()],
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            check_restart: restart,
            ..ServiceCheck::default()
        }],
        ..builders::registered("web", "")
    }];
    stored(job)
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_run_inside_containers() {
    if !has_engine() {
        return;
    }
    import_image();
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    set_level(&cluster, "info");
    let record = cluster.facts().registrations.last().cloned().unwrap();
    let _containers = Containers(record.id.to_string());
    let mut job = container("trap 'exit 0' TERM; while :; do sleep 0.1; done");
    let script = "read level < /local/level; echo \"$0 $level\" > /alloc/ran";
    let mut scripted = with_script(script, true);
    let own = &mut scripted.task_groups[0].tasks[0];
    let check = "read level < /local/level; echo \"$level\"; [ \"$level\" = debug ]";
    let mut checked = checked("", check, None);
    job.task_groups[0].tasks[0].templates = std::mem::take(&mut own.templates);
    job.task_groups[0].services = std::mem::take(&mut checked.task_groups[0].services);
    let id = cluster.assign(1, &stored(job));
    assert_eq!(
        check_of(&cluster, &node, id, "warning").await.output,
        "info\n"
    );
    set_level(&cluster, "debug");
    event(&cluster, id, "has changed: ran /bin/sh").await;
    let ran = place.path().join(format!("alloc/{id}/alloc/ran"));
    assert_eq!(std::fs::read_to_string(ran).unwrap(), "server debug\n");
    assert_eq!(
        check_of(&cluster, &node, id, "success").await.output,
        "debug\n"
    );
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    node.stop().await;
}

/// Waits until the allocation's only check has this status.
async fn check_of(cluster: &Cluster, node: &Running, id: AllocId, status: &str) -> AllocationCheck {
    let secret = cluster.facts().registrations.last().unwrap().secret.clone();
    let channel = service_kit::connect_lazy(&node.address).unwrap();
    let client = NodeOperationsClient::new(channel);
    wait_for(status, LIMIT, async || {
        let request = NodeChecksRequest {
            alloc_id: id.to_string(),
            secret: secret.clone(),
        };
        // It may not be on the node yet.
        let answer = client.clone().checks(request).await.ok()?;
        let checks = answer.into_inner().checks.into_iter();
        checks.into_iter().find(|check| check.status == status)
    })
    .await
}

#[tokio::test]
async fn the_exit_code_of_a_script_is_the_status_of_its_check() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let script = "echo of $NOMAD_TASK_NAME; exit $(cat local/code)";
    let job = checked("echo 0 > local/code; echo up; sleep 600", script, None);
    let id = cluster.assign(1, &job);
    place.said(id, "up").await;
    let code = place.path().join(format!("alloc/{id}/server/local/code"));
    for (number, status) in [("0", "success"), ("1", "warning"), ("2", "failure")] {
        std::fs::write(&code, number).unwrap();
        let found = check_of(&cluster, &node, id, status).await;
        assert_eq!(found.output, "of server\n");
    }
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_script_check_that_keeps_failing_restarts_its_task_and_finds_the_new_one() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let restart = CheckRestart {
        limit: 1,
        grace: Duration::ZERO,
        ignore_warnings: false,
    };
    // The second start is healthy.
    let task = "test -e local/first && touch local/ok; touch local/first; echo up; sleep 600";
    let mut job = checked(task, "test -e local/ok", Some(restart));
    job.task_groups[0].tasks[0].restart.mode = RestartMode::Delay;
    let id = cluster.assign(1, &job);
    let told = event(&cluster, id, "Restart Signaled").await;
    assert_eq!(
        told,
        "Restart Signaled: healthcheck: check \"ready\" unhealthy"
    );
    place.said(id, "up\nup\n").await;
    check_of(&cluster, &node, id, "success").await;
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}
