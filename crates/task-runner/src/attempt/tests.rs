//! Tasks with Vault: starts, changes, outages, the end. In real time, against a stand-in for Vault.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lifecycle::Assignment;
use local_state::LocalState;
use model::template::{ChangeMode, Template, TemplateWait};
use model::vault::Vault as Block;
use model::{AllocClient, NodeId, Timestamp};
use task_drivers::driver::BoxFuture;
use task_drivers::{AllocDirs, MockDriver};
use test_kit::builders;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vault_test_kit::{Fault, Role, Vault};
use workload_identity::{SignedToken, TokenRequest};

use crate::context::Context;
use crate::handle::{Command, Handle};
use crate::run::spawn;
use crate::runner::RunnerStart;
use crate::token_source::{TokenError, TokenSource};

/// Signs what it is asked for, with the audience of the request.
#[derive(Debug, Default)]
struct Gateway {
    asked: Mutex<Vec<TokenRequest>>,
    refusal: Option<&'static str>,
}

impl TokenSource for Gateway {
    fn sign(
        &self,
        requests: Vec<TokenRequest>,
    ) -> BoxFuture<'static, Result<Vec<SignedToken>, TokenError>> {
        self.asked.lock().unwrap().extend(requests.clone());
        let refusal = self.refusal;
        let sign = |request: &TokenRequest| {
            let claims = format!("{{\"aud\":\"{}\"}}", request.audience.join(","));
            let claims = URL_SAFE_NO_PAD.encode(claims);
            SignedToken {
                token: workload_identity::Token::new(format!("e30.{claims}.PLANTED")),
                issued_at: Timestamp(0),
                expires_at: Timestamp::NEVER,
            }
        };
        let signed = requests.iter().map(sign).collect();
        Box::pin(async move {
            match refusal {
                Some(reason) => Err(TokenError::Refused(reason.to_owned())),
                None => Ok(signed),
            }
        })
    }
}

/// One allocation of one task on a node with Vault.
struct Node {
    base: tempfile::TempDir,
    assignment: Assignment,
    context: Arc<Context>,
    gateway: Arc<Gateway>,
    tasks: TaskTracker,
    drain: CancellationToken,
    last: AllocClient,
}

fn block() -> Block {
    Block {
        policies: Vec::new(),
        role: "web".to_owned(),
        namespace: String::new(),
        cluster: Block::DEFAULT_CLUSTER.to_owned(),
        env: true,
        disable_file: false,
        change_mode: ChangeMode::Restart,
        change_signal: "SIGHUP".to_owned(),
        allow_token_expiration: false,
    }
}

/// A template without a wait.
fn template(data: &str) -> Template {
    Template {
        splay: Duration::ZERO,
        wait: Some(TemplateWait {
            min: Duration::ZERO,
            max: Duration::ZERO,
        }),
        ..builders::template("secrets/app.conf", data)
    }
}

const PASSWORD: &str = "{{ with secret `secret/app` }}pw={{ .Data.data.password }}{{ end }}";

impl Node {
    fn new(vault: &Vault, block: Option<Block>, templates: Vec<Template>) -> Self {
        Self::with(vault, block, templates, Gateway::default())
    }

    fn with(
        vault: &Vault,
        block: Option<Block>,
        templates: Vec<Template>,
        gateway: Gateway,
    ) -> Self {
        let config = vault::VaultConfig {
            enabled: true,
            address: vault.url(),
            timeout: Duration::from_secs(5),
            poll_interval: Duration::from_secs(1),
            ..vault::VaultConfig::default()
        };
        let mut job = builders::service("web", 1);
        let group = &mut job.task_groups[0];
        group.tasks.truncate(1);
        group.tasks[0].driver = "mock_driver".to_owned();
        group.tasks[0].config = [("run_for".to_owned(), "24h".into())].into_iter().collect();
        group.tasks[0].vault = block;
        group.tasks[0].templates = templates;
        let alloc = builders::allocation(1, &job, NodeId::from_random(1));
        let assignment = Assignment {
            alloc: Arc::new(alloc),
            job: Arc::new(job),
            modify_index: 5,
            trace_parent: String::new(),
            volume_paths: BTreeMap::new(),
        };
        let base = tempfile::tempdir().unwrap();
        let gateway = Arc::new(gateway);
        let mut context = Context::for_test(LocalState::none(), MockDriver::default());
        context.alloc_dir = Some(base.path().to_owned());
        context.tokens = Arc::clone(&gateway) as Arc<dyn TokenSource>;
        let client = vault::Client::open(&config).unwrap();
        context.vault = Some(task_vault::Node::new(client, &config));
        Self {
            base,
            assignment,
            context: Arc::new(context),
            gateway,
            tasks: TaskTracker::new(),
            drain: CancellationToken::new(),
            last: AllocClient::default(),
        }
    }

    fn run(&self) -> Handle {
        let start = RunnerStart {
            assignment: self.assignment.clone(),
            stored: None,
            leftovers: Vec::new(),
            predecessors: Vec::new(),
            is_contacted: true,
        };
        spawn(&self.context, start, self.drain.clone(), &self.tasks).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        let dirs = AllocDirs::new(self.base.path(), self.assignment.alloc.id);
        let task = &self.assignment.job.task_groups[0].tasks[0].name;
        dirs.task(task).secrets.join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    fn events(&mut self) -> Vec<String> {
        for (_, client) in self.context.reporter.queue().take() {
            self.last = client;
        }
        let states = self.last.task_states.values();
        let events = states.flat_map(|state| &state.events);
        events
            .map(|event| format!("{}: {}", event.event_type, event.message))
            .collect()
    }

    async fn until(
        &mut self,
        what: &str,
        wanted: impl Fn(&Self, &[String]) -> bool,
    ) -> Vec<String> {
        for _ in 0..200 {
            let events = self.events();
            if wanted(self, &events) {
                return events;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{what}: not within 20 s: {:#?}", self.events());
    }

    async fn until_event(&mut self, part: &str) -> Vec<String> {
        self.until(part, |_, events| {
            events.iter().any(|event| event.contains(part))
        })
        .await
    }

    async fn stop(&mut self, handle: &Handle) {
        handle.send(Command::Collect).await;
        self.tasks.close();
        let ended = self.tasks.wait();
        tokio::time::timeout(Duration::from_secs(20), ended)
            .await
            .expect("it ends in time");
    }
}

fn count(events: &[String], part: &str) -> usize {
    events.iter().filter(|event| event.contains(part)).count()
}

#[tokio::test]
async fn a_task_has_its_token_and_its_secrets_and_restarts_with_a_changed_one() {
    let vault = Vault::start().await;
    vault.put(
        "secret/app",
        serde_json::json!({ "password": "one-PLANTED" }),
    );
    let mut node = Node::new(&vault, Some(block()), vec![template(PASSWORD)]);
    let handle = node.run();
    node.until_event("Started").await;
    assert_eq!(node.read("app.conf"), "pw=one-PLANTED");
    assert_eq!([node.read("vault_token")], *vault.tokens());
    {
        let asked = node.gateway.asked.lock().unwrap();
        assert_eq!(asked[0].identity, "vault_default");
        assert_eq!(asked[0].audience, ["vault.io"]);
    }
    vault.put(
        "secret/app",
        serde_json::json!({ "password": "two-PLANTED" }),
    );
    let events = node
        .until("a second start", |_, events| count(events, "Started") == 2)
        .await;
    assert_eq!(node.read("app.conf"), "pw=two-PLANTED");
    assert_eq!(
        count(&events, "Restart Signaled: The data of template"),
        1,
        "{events:#?}"
    );
    assert_eq!(vault.count("login"), 1, "the restart uses the token again");
    assert!(
        events.iter().all(|event| !event.contains("PLANTED")),
        "{events:#?}"
    );
    node.stop(&handle).await;
    assert!(vault.tokens().is_empty(), "the token ends with the task");
}

#[tokio::test]
async fn a_start_waits_for_vault_and_says_so() {
    let mut vault = Vault::stopped().await;
    vault.put("secret/app", serde_json::json!({ "password": "x" }));
    let mut node = Node::new(&vault, Some(block()), vec![template(PASSWORD)]);
    let handle = node.run();
    let events = node.until_event("Waiting for a token of Vault").await;
    assert_eq!(count(&events, "Started"), 0);
    assert!(
        events
            .iter()
            .any(|event| event.contains("cannot be reached")),
        "{events:#?}"
    );
    vault.serve().await;
    node.until_event("Started").await;
    node.stop(&handle).await;
}

#[tokio::test]
async fn a_template_waits_for_its_secret_and_says_so() {
    let vault = Vault::start().await;
    let mut node = Node::new(&vault, Some(block()), vec![template(PASSWORD)]);
    let handle = node.run();
    let events = node
        .until_event("Missing: vault.read(secret/app) (Vault has nothing")
        .await;
    assert_eq!(count(&events, "Started"), 0);
    vault.put("secret/app", serde_json::json!({ "password": "x" }));
    node.until_event("Started").await;
    assert_eq!(node.read("app.conf"), "pw=x");
    node.stop(&handle).await;
}

#[tokio::test]
async fn an_outage_neither_ends_nor_restarts_a_running_task() {
    let vault = Vault::start().await;
    vault.put_role(
        "web",
        Role {
            ttl: Duration::from_secs(3),
            ..Role::default()
        },
    );
    vault.put("secret/app", serde_json::json!({ "password": "x" }));
    let mut node = Node::new(&vault, Some(block()), vec![template(PASSWORD)]);
    let handle = node.run();
    node.until_event("Started").await;
    vault.fail(Some(Fault::Sealed));
    // Longer than the token lives.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let events = node.events();
    assert_eq!(count(&events, "Restart"), 0, "{events:#?}");
    assert_eq!(node.read("app.conf"), "pw=x");
    // A restart in the meantime needs no Vault.
    let (answer, _answered) = tokio::sync::oneshot::channel();
    let scope = model::RestartScope::Running;
    handle.send(Command::Restart { scope, answer }).await;
    node.until("a second start", |_, events| count(events, "Started") == 2)
        .await;
    let lost = node.read("vault_token");
    vault.fail(None);
    node.until("a new token", |node, _| node.read("vault_token") != lost)
        .await;
    node.until("its restart", |_, events| {
        count(events, "Vault gave a new token") == 1
    })
    .await;
    node.stop(&handle).await;
}

#[tokio::test]
async fn a_new_token_signals_the_task_or_leaves_it_alone() {
    for (mode, want) in [
        (
            ChangeMode::Signal,
            "Vault: Vault gave a new token: sent SIGHUP",
        ),
        (ChangeMode::Noop, ""),
    ] {
        let vault = Vault::start().await;
        vault.put_role(
            "web",
            Role {
                ttl: Duration::from_secs(2),
                ..Role::default()
            },
        );
        let mut node = Node::new(
            &vault,
            Some(Block {
                change_mode: mode,
                ..block()
            }),
            Vec::new(),
        );
        let handle = node.run();
        node.until_event("Started").await;
        let first = node.read("vault_token");
        vault.revoke_all();
        node.until("a new token", |node, _| {
            let now = node.read("vault_token");
            now != first && !now.is_empty()
        })
        .await;
        if want.is_empty() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        } else {
            node.until_event(want).await;
        }
        let events = node.events();
        assert_eq!(count(&events, "Restart"), 0, "{events:#?}");
        node.stop(&handle).await;
    }
}

#[tokio::test]
async fn a_refused_login_fails_the_start_with_the_reason() {
    let vault = Vault::start().await;
    let mut node = Node::new(
        &vault,
        Some(Block {
            role: "none".to_owned(),
            ..block()
        }),
        Vec::new(),
    );
    let handle = node.run();
    let events = node.until_event("Task hook failed").await;
    let failed = events
        .iter()
        .find(|event| event.contains("Task hook failed"))
        .unwrap();
    assert!(
        failed.contains("role \"none\" could not be found"),
        "{failed}"
    );
    node.stop(&handle).await;
    let refusing = Gateway {
        refusal: Some("the job has no such identity"),
        ..Gateway::default()
    };
    let mut node = Node::with(&vault, Some(block()), Vec::new(), refusing);
    let handle = node.run();
    node.until_event("identity token: the job has no such identity")
        .await;
    node.stop(&handle).await;
}

#[tokio::test]
async fn a_token_may_have_no_file_and_a_template_no_vault() {
    let vault = Vault::start().await;
    let silent = Block {
        disable_file: true,
        env: false,
        ..block()
    };
    let mut node = Node::new(&vault, Some(silent), Vec::new());
    let handle = node.run();
    node.until_event("Started").await;
    assert!(!node.file("vault_token").exists());
    node.stop(&handle).await;
    let mut node = Node::new(&vault, None, vec![template(PASSWORD)]);
    let handle = node.run();
    node.until_event("The task has no token of Vault: add a vault block")
        .await;
    node.stop(&handle).await;
}

#[tokio::test]
async fn an_error_with_changed_data_leaves_the_file_and_hides_the_secret() {
    let vault = Vault::start().await;
    vault.put("secret/app", serde_json::json!({ "password": "17" }));
    let data = "{{ with secret `secret/app` }}n={{ .Data.data.password | parseInt }}{{ end }}";
    let mut node = Node::new(&vault, Some(block()), vec![template(data)]);
    let handle = node.run();
    node.until_event("Started").await;
    vault.put("secret/app", serde_json::json!({ "password": "PLANTED" }));
    let events = node.until_event("The task keeps its file").await;
    assert_eq!(node.read("app.conf"), "n=17");
    assert!(
        events.iter().all(|event| !event.contains("PLANTED")),
        "{events:#?}"
    );
    node.stop(&handle).await;
}
