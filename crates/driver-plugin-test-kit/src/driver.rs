//! The driver's calls.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use driver_plugin::wire::drivers::driver_capabilities::FsIsolation;
use driver_plugin::wire::drivers::driver_server::Driver;
use driver_plugin::wire::drivers::fingerprint_response::HealthState;
use driver_plugin::wire::drivers::*;
use driver_plugin::wire::structs::{Attribute, RecoverableError, attribute};
use prost::Message as _;
use prost_types::Any;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Code, Request, Response, Status, Streaming};

use crate::base::{StandIn, attr, block_attrs, object, or_else};
use crate::control::{
    self, NO_STREAMS, RECOVERY_FAILS, SLOW, START_DIES, START_FAILS, START_HANGS, START_SLOW,
    UNHEALTHY,
};
use crate::decode::decode;
use crate::options::Options;
use crate::tasks::Task;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Interval of fingerprints.
const INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

fn start_error(message: &str) -> Status {
    let recoverable = message.contains("retry");
    let details = vec![Any {
        type_url: "type.googleapis.com/hashicorp.nomad.plugins.shared.structs.RecoverableError"
            .to_owned(),
        value: RecoverableError { recoverable }.encode_to_vec(),
    }];
    let code = Code::FailedPrecondition;
    let details = RpcStatus {
        code: code.into(),
        details,
    };
    Status::with_details(code, message, details.encode_to_vec().into())
}

fn fingerprint(options: &Options, greeting: &str) -> FingerprintResponse {
    let text = |text: &str| Attribute {
        value: Some(attribute::Value::StringVal(text.to_owned())),
        unit: String::new(),
    };
    let is_healthy = !control::is_on(options.control.as_deref(), UNHEALTHY);
    let health = if is_healthy {
        HealthState::Healthy
    } else {
        HealthState::Unhealthy
    };
    FingerprintResponse {
        attributes: [
            (format!("driver.{}.greeting", options.name), text(greeting)),
            ("kernel.name".to_owned(), text("plan9")),
        ]
        .into(),
        health: health.into(),
        health_description: if is_healthy { "fine" } else { "switched off" }.to_owned(),
    }
}

impl StandIn {
    async fn exec(&self, id: &str, line: &[String]) -> Result<std::process::Output, Status> {
        self.tasks.get(id)?;
        let [program, args @ ..] = line else {
            return Err(Status::invalid_argument("there is no command"));
        };
        let ran = Command::new(program)
            .args(args)
            .kill_on_drop(true)
            .output()
            .await;
        ran.map_err(|error| Status::unknown(error.to_string()))
    }
}

fn exit(code: i32) -> ExitResult {
    ExitResult {
        exit_code: code,
        ..ExitResult::default()
    }
}

#[tonic::async_trait]
impl Driver for StandIn {
    async fn task_config_schema(
        &self,
        _: Request<TaskConfigSchemaRequest>,
    ) -> Result<Response<TaskConfigSchemaResponse>, Status> {
        let spec = object([
            ("command", attr("string", true)),
            (
                "args",
                or_else(crate::base::named("args", "list(string)"), "[]"),
            ),
            ("vars", block_attrs("string")),
        ]);
        Ok(Response::new(TaskConfigSchemaResponse { spec: Some(spec) }))
    }

    async fn capabilities(
        &self,
        _: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        let ability = self.options.ability.as_str();
        let isolation = if ability == "chroot" {
            FsIsolation::Chroot
        } else {
            FsIsolation::None
        };
        let capabilities = DriverCapabilities {
            send_signals: true,
            exec: true,
            fs_isolation: isolation.into(),
            must_create_network: ability == "network",
            remote_tasks: ability == "remote",
            ..DriverCapabilities::default()
        };
        Ok(Response::new(CapabilitiesResponse {
            capabilities: Some(capabilities),
        }))
    }

    type FingerprintStream = Answers<FingerprintResponse>;

    async fn fingerprint(
        &self,
        _: Request<FingerprintRequest>,
    ) -> Result<Response<Self::FingerprintStream>, Status> {
        let (sender, receiver) = mpsc::channel(1);
        let options = self.options.clone();
        let greeting = self
            .greeting
            .lock()
            .map(|it| it.clone())
            .unwrap_or_default();
        tokio::spawn(async move {
            while sender
                .send(Ok(fingerprint(&options, &greeting)))
                .await
                .is_ok()
            {
                sleep(INTERVAL).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn recover_task(
        &self,
        request: Request<RecoverTaskRequest>,
    ) -> Result<Response<RecoverTaskResponse>, Status> {
        let request = request.into_inner();
        self.called("RecoverTask", &request.task_id).await;
        if self.is_on(RECOVERY_FAILS) {
            return Err(Status::unknown("switched off"));
        }
        let handle = request.handle.unwrap_or_default();
        let task = Task::of_handle(&handle)?;
        let id = handle.config.unwrap_or_default().id;
        self.tasks.put(&id, Some(task));
        Ok(Response::new(RecoverTaskResponse {}))
    }

    async fn start_task(
        &self,
        request: Request<StartTaskRequest>,
    ) -> Result<Response<StartTaskResponse>, Status> {
        let config = request.into_inner().task.unwrap_or_default();
        self.called("StartTask", &config.id).await;
        if self.is_on(START_FAILS) {
            let control = self.options.control.clone().unwrap_or_default();
            let reason = std::fs::read_to_string(control.join(START_FAILS)).unwrap_or_default();
            return Err(start_error(&reason));
        }
        let block = decode(&config.msgpack_driver_config).map_err(Status::invalid_argument)?;
        let is_slow = self.is_on(START_SLOW);
        let (tasks, of) = (Arc::clone(&self.tasks), config.clone());
        // A Go program goes on when the caller has given up.
        let starting = tokio::spawn(async move {
            if is_slow {
                sleep(SLOW).await;
            }
            let task = Task::start(&of, &block)?;
            tasks.put(&of.id, Some(task.clone()));
            Ok::<_, Status>(task)
        });
        let task = starting
            .await
            .map_err(|error| Status::internal(error.to_string()))??;
        if self.is_on(START_DIES) {
            std::process::exit(4);
        }
        if self.is_on(START_HANGS) {
            std::future::pending::<()>().await;
        }
        Ok(Response::new(StartTaskResponse {
            handle: Some(task.handle(config)),
            ..StartTaskResponse::default()
        }))
    }

    async fn wait_task(
        &self,
        request: Request<WaitTaskRequest>,
    ) -> Result<Response<WaitTaskResponse>, Status> {
        let id = request.into_inner().task_id;
        self.called("WaitTask", &id).await;
        let code = self.tasks.get(&id)?.ended().await;
        Ok(Response::new(WaitTaskResponse {
            result: Some(exit(code)),
            err: String::new(),
        }))
    }

    async fn stop_task(
        &self,
        request: Request<StopTaskRequest>,
    ) -> Result<Response<StopTaskResponse>, Status> {
        let request = request.into_inner();
        self.called("StopTask", &request.task_id).await;
        let task = self.tasks.get(&request.task_id)?;
        let signal = match request.signal.as_str() {
            "" => "SIGTERM",
            signal => signal,
        };
        let grace = request.timeout.unwrap_or_default();
        let grace = Duration::try_from(grace).unwrap_or_default();
        // It may have ended.
        let _ = task.signal(signal);
        if timeout(grace, task.ended()).await.is_err() {
            let _ = task.signal("SIGKILL");
            task.ended().await;
        }
        Ok(Response::new(StopTaskResponse {}))
    }

    async fn destroy_task(
        &self,
        request: Request<DestroyTaskRequest>,
    ) -> Result<Response<DestroyTaskResponse>, Status> {
        let request = request.into_inner();
        self.called("DestroyTask", &request.task_id).await;
        let task = self.tasks.get(&request.task_id)?;
        if task.exit_code().is_none() && task.is_alive() {
            if !request.force {
                return Err(Status::unknown("the task runs"));
            }
            let _ = task.signal("SIGKILL");
            task.ended().await;
        }
        self.tasks.put(&request.task_id, None);
        Ok(Response::new(DestroyTaskResponse {}))
    }

    async fn inspect_task(
        &self,
        request: Request<InspectTaskRequest>,
    ) -> Result<Response<InspectTaskResponse>, Status> {
        let id = request.into_inner().task_id;
        self.called("InspectTask", &id).await;
        let task = self.tasks.get(&id)?;
        let state = match task.exit_code() {
            Some(_) => TaskState::Exited,
            None => TaskState::Running,
        };
        let status = TaskStatus {
            id,
            state: state.into(),
            ..TaskStatus::default()
        };
        Ok(Response::new(InspectTaskResponse {
            task: Some(status),
            ..InspectTaskResponse::default()
        }))
    }

    type TaskStatsStream = Answers<TaskStatsResponse>;

    async fn task_stats(
        &self,
        request: Request<TaskStatsRequest>,
    ) -> Result<Response<Self::TaskStatsStream>, Status> {
        let id = request.into_inner().task_id;
        self.tasks.get(&id)?;
        let usage = TaskResourceUsage {
            cpu: Some(CpuUsage {
                percent: 50.0,
                ..CpuUsage::default()
            }),
            memory: Some(MemoryUsage {
                usage: 4_096,
                measured_fields: vec![memory_usage::Fields::Usage.into()],
                ..MemoryUsage::default()
            }),
        };
        let sample = TaskStatsResponse {
            stats: Some(TaskStats {
                id,
                agg_resource_usage: Some(usage),
                ..TaskStats::default()
            }),
        };
        let samples = tokio_stream::iter([Ok(sample)]).chain(tokio_stream::pending());
        Ok(Response::new(Box::pin(samples)))
    }

    type TaskEventsStream = Answers<DriverTaskEvent>;

    async fn task_events(
        &self,
        _: Request<TaskEventsRequest>,
    ) -> Result<Response<Self::TaskEventsStream>, Status> {
        Ok(Response::new(Box::pin(tokio_stream::pending())))
    }

    async fn signal_task(
        &self,
        request: Request<SignalTaskRequest>,
    ) -> Result<Response<SignalTaskResponse>, Status> {
        let request = request.into_inner();
        self.called("SignalTask", &request.task_id).await;
        self.tasks.get(&request.task_id)?.signal(&request.signal)?;
        Ok(Response::new(SignalTaskResponse {}))
    }

    async fn exec_task(
        &self,
        request: Request<ExecTaskRequest>,
    ) -> Result<Response<ExecTaskResponse>, Status> {
        let request = request.into_inner();
        self.called("ExecTask", &request.task_id).await;
        let output = self.exec(&request.task_id, &request.command).await?;
        Ok(Response::new(ExecTaskResponse {
            stdout: output.stdout,
            stderr: output.stderr,
            result: Some(exit(output.status.code().unwrap_or(137))),
        }))
    }

    type ExecTaskStreamingStream = Answers<ExecTaskStreamingResponse>;

    async fn exec_task_streaming(
        &self,
        request: Request<Streaming<ExecTaskStreamingRequest>>,
    ) -> Result<Response<Self::ExecTaskStreamingStream>, Status> {
        let mut requests = request.into_inner();
        let first = requests.message().await?.unwrap_or_default();
        let setup = first
            .setup
            .ok_or_else(|| Status::unknown("there is no setup"))?;
        self.called("ExecTaskStreaming", &setup.task_id).await;
        if self.is_on(NO_STREAMS) {
            return Err(Status::unknown("driver does not support exec"));
        }
        self.tasks.get(&setup.task_id)?;
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(stream(setup.command, requests, sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn create_network(
        &self,
        _: Request<CreateNetworkRequest>,
    ) -> Result<Response<CreateNetworkResponse>, Status> {
        Err(Status::unimplemented("no networks"))
    }

    async fn destroy_network(
        &self,
        _: Request<DestroyNetworkRequest>,
    ) -> Result<Response<DestroyNetworkResponse>, Status> {
        Err(Status::unimplemented("no networks"))
    }
}

/// Runs a command with its input, and sends its output.
async fn stream(
    line: Vec<String>,
    mut requests: Streaming<ExecTaskStreamingRequest>,
    answers: mpsc::Sender<Result<ExecTaskStreamingResponse, Status>>,
) {
    let mut command = Command::new(line.first().map_or("", String::as_str));
    command
        .args(line.iter().skip(1))
        .kill_on_drop(true)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let _ = answers.send(Err(Status::unknown(error.to_string()))).await;
            return;
        }
    };
    let (mut stdin, mut stdout) = (child.stdin.take(), child.stdout.take());
    let feeding = async {
        while let Ok(Some(request)) = requests.message().await {
            let part = request.stdin.unwrap_or_default();
            if let Some(stdin) = &mut stdin {
                let _ = stdin.write_all(&part.data).await;
            }
            if part.close {
                stdin = None;
            }
        }
        std::future::pending::<()>().await;
    };
    let copying = async {
        let mut buffer = vec![0; 4_096];
        while let Some(stdout) = &mut stdout {
            let length = stdout.read(&mut buffer).await.unwrap_or(0);
            let part = ExecTaskStreamingIoOperation {
                data: buffer[..length].to_vec(),
                close: length == 0,
            };
            let answer = ExecTaskStreamingResponse {
                stdout: Some(part),
                ..ExecTaskStreamingResponse::default()
            };
            if answers.send(Ok(answer)).await.is_err() || length == 0 {
                return;
            }
        }
    };
    tokio::select! {
        () = feeding => {}
        () = copying => {}
    }
    let code = child.wait().await.ok().and_then(|status| status.code());
    let last = ExecTaskStreamingResponse {
        exited: true,
        result: Some(exit(code.unwrap_or(137))),
        ..ExecTaskStreamingResponse::default()
    };
    let _ = answers.send(Ok(last)).await;
}
