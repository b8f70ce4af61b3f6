//! Templates of real tasks: files, variables, waits and failures.

use std::time::Duration;

use model::job::RestartMode;
use model::{AllocClient, ClientStatus};
use test_kit::builders::template;

use crate::gateway::Facts;
use crate::node::{Place, batch, service, start};

fn events(client: &AllocClient) -> Vec<(String, String)> {
    let Some(state) = client.task_states.get("server") else {
        return Vec::new();
    };
    let events = state.events.iter();
    events
        .map(|event| (event.event_type.clone(), event.message.clone()))
        .collect()
}

#[tokio::test]
async fn a_task_finds_its_rendered_files_and_variables() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job =
        batch("cat local/app.conf $NOMAD_SECRETS_DIR/key; stat -c %a secrets/key; echo $LEVEL $1");
    let task = &mut job.task_groups[0].tasks[0];
    task.env.insert("LEVEL".to_owned(), "overridden".to_owned());
    let args = task.config["args"].as_array_mut().unwrap();
    args.extend(["sh".into(), "${FROM_TEMPLATE}".into()]);
    let mut key = template(
        "${NOMAD_SECRETS_DIR}/key",
        "{{ \"k\" | sha256Hex | len }}\n",
    );
    key.perms = "0400".to_owned();
    let mut env = template(
        "secrets/app.env",
        "LEVEL=\"info {{ env \"attr.kernel.name\" }}\"\nFROM_TEMPLATE=arg\n",
    );
    env.env = true;
    let text = "task {{ env \"NOMAD_TASK_NAME\" }}, node {{ env \"node.datacenter\" }}\n";
    task.templates = vec![template("local/app.conf", text), key, env];
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Complete).await;
    assert_eq!(
        place.output(id),
        "task server, node dc1\n64\n400\ninfo linux arg\n"
    );
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn scenario_033_each_start_renders_the_templates_again() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = service("cat local/x; echo changed > local/x; exit 1");
    let task = &mut job.task_groups[0].tasks[0];
    (task.restart.attempts, task.restart.delay, task.restart.mode) =
        (1, Duration::from_millis(50), RestartMode::Fail);
    task.templates = vec![template("local/x", "first\n")];
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Failed).await;
    assert_eq!(place.output(id), "first\nfirst\n");
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn scenario_065_a_task_whose_template_waits_stays_pending_says_why_and_can_be_stopped() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = service("echo started");
    job.task_groups[0].tasks[0].templates = vec![template(
        "local/x",
        "{{ with nomadVar \"app/db\" }}{{ .user }}{{ end }}",
    )];
    let id = cluster.assign(1, &job);
    let find = |facts: &Facts| {
        let mut events = events(facts.reported.get(&id)?).into_iter();
        Some(events.find(|(event_type, _)| event_type == "Template")?.1)
    };
    let message = cluster.until_fact("the event of the template", find).await;
    assert!(
        message.starts_with("Missing: nomad.var.block(app/db@default.global) (gateway http")
            && message.contains("this gateway has no data"),
        "{message}"
    );
    assert_eq!(cluster.status(id), Some(ClientStatus::Pending));
    cluster.stop(id);
    let client = cluster.until(id, ClientStatus::Complete).await;
    let types: Vec<String> = events(&client)
        .into_iter()
        .map(|(event_type, _)| event_type)
        .collect();
    assert!(!types.contains(&"Started".to_owned()), "{types:?}");
    assert_eq!(place.output(id), "");
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_template_that_fails_is_a_failed_start() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = service("echo started");
    let task = &mut job.task_groups[0].tasks[0];
    (task.restart.attempts, task.restart.mode) = (0, RestartMode::Fail);
    task.templates = vec![template("local/x", "a\n{{ mustEnv \"NO_SUCH\" }}")];
    let id = cluster.assign(1, &job);
    let client = cluster.until(id, ClientStatus::Failed).await;
    let events = events(&client);
    let failure = events
        .iter()
        .find(|(event_type, _)| event_type == "Task hook failed");
    let want = "template for \"local/x\": line 2, column 4: mustEnv: the environment variable NO_SUCH is not set";
    assert_eq!(
        failure.map(|(_, message)| message.as_str()),
        Some(want),
        "{events:?}"
    );
    place.is_empty().await;
    node.stop().await;
}
