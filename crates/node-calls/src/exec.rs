//! Relay of a command beside a task, between its caller and the node of the task.

use std::time::Duration;

use admission::jobs::restart_alloc::RestartTarget;
use futures::{Stream, StreamExt as _, future, stream};
use gateway_core::GaugeGuard;
use identity::Caller;
use proto::internal::v1::NodeExecInput;
use proto::v1;
use proto::v1::exec_input::Input;
use service_kit::request as with_deadline;
use tonic::{Code, Status, Streaming};
use tracing::info;

use crate::node_call;
use crate::node_calls::NodeCalls;

/// The timeout until a node answers: it finds the task, and the connection may be new.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout until the caller's first message.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the first message of a call.
///
/// # Errors
/// It does not come, or is another one.
pub async fn read_start(inputs: &mut Streaming<v1::ExecInput>) -> Result<v1::ExecStart, Status> {
    let first = tokio::time::timeout(START_TIMEOUT, inputs.message()).await;
    let first = first.map_err(|_| Status::deadline_exceeded("the first message is missing"))??;
    match first.and_then(|message| message.input) {
        Some(Input::Start(start)) => Ok(start),
        _ => Err(proto::status::invalid_field(
            "start",
            "missing: the first message starts the command".to_owned(),
        )),
    }
}

/// Relays input and output until the command or the caller ends, or the gateway drains. The node kills
/// a command whose caller is gone.
///
/// # Errors
/// The node cannot be reached, or refuses.
pub async fn relay(
    calls: &NodeCalls,
    target: &RestartTarget,
    caller: &Caller,
    start: v1::ExecStart,
    inputs: Streaming<v1::ExecInput>,
) -> Result<impl Stream<Item = Result<v1::ExecOutput, Status>> + Send + use<>, Status> {
    let node = target.node.clone();
    let audit = Audit::new(caller, target, &start);
    let first = NodeExecInput {
        input: Some(v1::ExecInput {
            input: Some(Input::Start(v1::ExecStart {
                alloc_id: target.alloc_id.to_string(),
                ..start
            })),
        }),
        secret: node.secret.clone(),
    };
    // An error means that the caller is gone, which ends the output as well.
    let rest = inputs
        .take_while(|input| future::ready(input.is_ok()))
        .filter_map(|input| future::ready(input.ok()))
        .map(|input| NodeExecInput {
            input: Some(input),
            secret: String::new(),
        });
    let messages = stream::once(future::ready(first)).chain(rest);
    let mut client = node_call::client(calls, &node).await?;
    let outputs = match client.exec(with_deadline(messages, NODE_TIMEOUT)).await {
        Ok(response) => response.into_inner(),
        Err(status) if status.code() == Code::Unimplemented => {
            return Err(node_call::older_agent(&node, "runs commands in tasks"));
        }
        Err(status) => return Err(node_call::failure(&node, &status)),
    };
    let open = GaugeGuard::new(&calls.metrics.exec_relays);
    let drain = calls.drain.clone();
    // Pulled by the caller's connection, so a slow caller slows the command down.
    Ok(outputs
        .map(move |output| {
            let _kept = (&open, &audit);
            output.map_err(|status| node_call::failure(&node, &status))
        })
        .take_until(drain.cancelled_owned()))
}

/// Logs a command and its end, without its arguments, which may hold secrets.
struct Audit {
    caller: String,
    alloc_id: String,
    task: String,
    program: String,
}

impl Audit {
    fn new(caller: &Caller, target: &RestartTarget, start: &v1::ExecStart) -> Self {
        let audit = Self {
            caller: caller.to_string(),
            alloc_id: target.alloc_id.to_string(),
            task: start.task.clone(),
            program: start.command.first().cloned().unwrap_or_default(),
        };
        audit.log("command asked for in a task");
        audit
    }

    fn log(&self, what: &str) {
        let Self {
            caller,
            alloc_id,
            task,
            program,
        } = self;
        info!(caller, alloc_id, task, program, "{what}");
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.log("command in a task is over");
    }
}
