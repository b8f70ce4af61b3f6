//! Commands beside tasks, over the node's own RPC.

use model::{AllocId, ClientStatus};
use proto::internal::v1::NodeExecInput;
use proto::internal::v1::node_operations_client::NodeOperationsClient;
use proto::v1::exec_input::Input;
use proto::v1::exec_output::Output;
use proto::v1::{ExecInput, ExecOutput, ExecStart, TerminalSize};
use test_kit::wait_for;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::containers::{Containers, container, has_engine, import_image};
use crate::gateway::LIMIT;
use crate::node::{Place, Running, is_alive, service, start};

/// Commands at a time, as the node bounds them.
const SLOTS: usize = 16;

/// A caller of a node: the gateway.
struct Caller<'a> {
    node: &'a Running,
    alloc_id: AllocId,
    secret: String,
}

/// A running command.
struct Session {
    input: mpsc::Sender<NodeExecInput>,
    output: Streaming<ExecOutput>,
}

fn message(input: Input, secret: &str) -> NodeExecInput {
    NodeExecInput {
        input: Some(ExecInput { input: Some(input) }),
        secret: secret.to_owned(),
    }
}

impl Caller<'_> {
    async fn begin(
        &self,
        task: &str,
        script: &str,
        terminal: Option<TerminalSize>,
    ) -> Result<Session, Status> {
        let start = ExecStart {
            alloc_id: self.alloc_id.to_string(),
            task: task.to_owned(),
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            terminal,
            action: String::new(),
        };
        let (input, messages) = mpsc::channel(8);
        let first = message(Input::Start(start), &self.secret);
        input.send(first).await.unwrap();
        let channel = service_kit::connect_lazy(&self.node.address).unwrap();
        let mut client = NodeOperationsClient::new(channel);
        let opened = client.exec(ReceiverStream::new(messages)).await?;
        let output = opened.into_inner();
        Ok(Session { input, output })
    }

    /// Runs a script with this input to its end.
    async fn run(&self, script: &str, text: &str) -> (i32, String) {
        let mut session = self.begin("server", script, None).await.unwrap();
        session.write(text).await;
        session.write("").await;
        session.end().await.unwrap()
    }
}

impl Session {
    async fn write(&self, text: &str) {
        let input = Input::Stdin(text.as_bytes().to_vec());
        let _ = self.input.send(message(input, "")).await;
    }

    /// Returns the exit code and the standard output.
    async fn end(&mut self) -> Result<(i32, String), Status> {
        let mut stdout = Vec::new();
        let reading = async {
            while let Some(message) = self.output.message().await? {
                match message.output {
                    Some(Output::Stdout(data)) => stdout.extend(data),
                    Some(Output::ExitCode(code)) => return Ok(code),
                    _ => {}
                }
            }
            Err(Status::internal("no exit code"))
        };
        let code = tokio::time::timeout(LIMIT, reading).await.unwrap()?;
        Ok((code, String::from_utf8(stdout).unwrap()))
    }

    /// Returns the numbers that the command writes first.
    async fn numbers(&mut self) -> Vec<i32> {
        loop {
            let message = self.output.message().await.unwrap().unwrap();
            if let Some(Output::Stdout(data)) = message.output {
                let text = String::from_utf8(data).unwrap();
                return text
                    .split_whitespace()
                    .map(|it| it.parse().unwrap())
                    .collect();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_by_itself_with_its_caller_or_with_its_task() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = service("echo up; exec sleep 600");
    job.task_groups[0].tasks[0].restart.attempts = 0;
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Running).await;
    let caller = Caller {
        node: &node,
        alloc_id: id,
        secret: cluster.facts().registrations[0].secret.clone(),
    };
    let script = "cat; echo $NOMAD_TASK_NAME; exit 3";
    assert_eq!(
        caller.run(script, "typed\n").await,
        (3, "typed\nserver\n".to_owned())
    );

    // A caller that sends no more has sent the end of the input.
    let mut silent = caller
        .begin("server", "cat; sleep 0.2; exit 6", None)
        .await
        .unwrap();
    silent.write("last").await;
    silent.input = mpsc::channel(1).0;
    assert_eq!(silent.end().await.unwrap(), (6, "last".to_owned()));

    let mut left = caller
        .begin("server", "echo $$; sleep 600", None)
        .await
        .unwrap();
    let pid = left.numbers().await[0];
    drop(left);
    wait_for(
        "the command without a caller to be gone",
        LIMIT,
        async || (!is_alive(pid)).then_some(()),
    )
    .await;

    let unknown = caller.begin("db", "true", None).await.err().unwrap();
    assert_eq!(unknown.code(), Code::FailedPrecondition);
    assert!(
        unknown.message().contains("want one of server"),
        "{unknown}"
    );
    let other = Caller {
        secret: "other".to_owned(),
        ..caller
    };
    let denied = other.begin("server", "true", None).await.err().unwrap();
    assert_eq!(denied.code(), Code::PermissionDenied);
    let caller = Caller {
        secret: cluster.facts().registrations[0].secret.clone(),
        ..other
    };

    let mut many = Vec::new();
    for _ in 0..SLOTS {
        many.push(caller.begin("server", "sleep 600", None).await.unwrap());
    }
    let busy = caller.begin("server", "true", None).await.err().unwrap();
    assert_eq!(busy.code(), Code::ResourceExhausted, "{busy}");
    drop(many.pop());
    wait_for("a free slot", LIMIT, async || {
        caller.begin("server", "true", None).await.ok()
    })
    .await;

    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    let ended = many[0].end().await;
    assert!(
        ended.as_ref().map_or_else(
            |status| status.message().contains("has ended"),
            |(code, _)| *code == 128 + 9
        ),
        "{ended:?}"
    );
    let refused = caller.begin("server", "true", None).await.err().unwrap();
    assert!(
        refused.message().contains("\"server\" is not running"),
        "{refused}"
    );
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_can_refuse_commands() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    node.stop().await;
    let mut config = place.config(&[&gateway.address]);
    config.disable_remote_exec = true;
    let node = Running::start(config).await;
    let id = cluster.assign(1, &service("echo up; exec sleep 600"));
    cluster.until(id, ClientStatus::Running).await;
    let caller = Caller {
        node: &node,
        alloc_id: id,
        secret: cluster.facts().registrations[0].secret.clone(),
    };
    let refused = caller.begin("server", "true", None).await.err().unwrap();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(
        refused.message().contains("disable_remote_exec"),
        "{refused}"
    );
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_a_container_ends_by_itself_or_with_its_caller() {
    if !has_engine() {
        return;
    }
    import_image();
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let record = cluster.facts().registrations.last().cloned().unwrap();
    let _containers = Containers(record.id.to_string());
    let script = "trap 'exit 0' TERM; while :; do sleep 0.1; done";
    let id = cluster.assign(1, &container(script));
    cluster.until(id, ClientStatus::Running).await;
    let caller = Caller {
        node: &node,
        alloc_id: id,
        secret: record.secret.clone(),
    };
    let script = "read line; echo \"$line from $NOMAD_TASK_NAME\"; exit 3";
    assert_eq!(
        caller.run(script, "hello\n").await,
        (3, "hello from server\n".to_owned())
    );
    let until_end = "while read line; do last=$line; done; echo $last";
    assert_eq!(caller.run(until_end, "a\nb\n").await, (0, "b\n".to_owned()));

    // On a terminal, standard input and output are the same device.
    let size = TerminalSize {
        rows: 20,
        columns: 70,
    };
    let script = "[ -t 0 ] && [ -t 1 ] && exit 5";
    let mut session = caller.begin("server", script, Some(size)).await.unwrap();
    assert_eq!(session.end().await.unwrap().0, 5);

    // Runs on while the file is touched by it.
    let script = "echo 1; while :; do echo on > /local/alive; sleep 0.05; done";
    let mut left = caller.begin("server", script, None).await.unwrap();
    left.numbers().await;
    drop(left);
    let alive = place.path().join(format!("alloc/{id}/server/local/alive"));
    wait_for(
        "the command without a caller to be gone",
        LIMIT,
        async || {
            let _ = std::fs::remove_file(&alive);
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            (!alive.exists()).then_some(())
        },
    )
    .await;
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    node.stop().await;
}
