//! Tasks' output, relayed from a node.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::{AllocClient, ClientStatus, Node, NodeStatus, TaskState};
use proto::internal::v1::node_operations_server::{NodeOperations, NodeOperationsServer};
use proto::internal::v1::{
    NodeAllocStatsRequest, NodeApplyMetaRequest, NodeChecksRequest, NodeChecksResponse,
    NodeCsiControlRequest, NodeCsiControlResponse, NodeExecInput, NodeGetFileRequest,
    NodeGetMetaRequest, NodeHostStatsRequest, NodeListFilesRequest, NodeLogsRequest,
    NodeReadFileRequest, NodeRefreshRequest, NodeRestartRequest, NodeRestartResponse,
    NodeSignalRequest,
};
use proto::v1;
use proto::v1::exec_input::Input;
use proto::v1::exec_output::Output;
use state::{Entity, Key};
use test_kit::wait_for;
use tokio::net::TcpListener;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Code, Request, Response, Status, Streaming};

use crate::support::{Suite, WAIT_LIMIT, alloc, ask, job, node};

pub(crate) const CHUNK: usize = 64 << 10;

/// A node with endless output, which counts its requests.
#[derive(Clone, Default)]
pub(crate) struct Files {
    pub(crate) chunks: Arc<AtomicUsize>,
    pub(crate) restarts: Arc<AtomicUsize>,
    /// Open commands.
    pub(crate) execs: Arc<AtomicUsize>,
    pub(crate) endless: bool,
}

#[tonic::async_trait]
impl NodeOperations for Files {
    type LogsStream = ReceiverStream<Result<v1::LogsChunk, Status>>;

    async fn logs(
        &self,
        request: Request<NodeLogsRequest>,
    ) -> Result<Response<Self::LogsStream>, Status> {
        let request = request.into_inner();
        if request.secret != "secret-1" {
            return Err(Status::permission_denied("not the node's secret"));
        }
        let asked = request.request.unwrap();
        if asked.offset > 100 {
            return Err(Status::out_of_range(
                "offset 101 is beyond the 5 bytes there are",
            ));
        }
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let files = self.clone();
        tokio::spawn(async move {
            if !files.endless {
                let data = format!("{}:{}", asked.task, asked.stream).into_bytes();
                let _ = sender.send(Ok(v1::LogsChunk { data })).await;
                return;
            }
            while sender
                .send(Ok(v1::LogsChunk {
                    data: vec![b'x'; CHUNK],
                }))
                .await
                .is_ok()
            {
                files.chunks.fetch_add(1, Ordering::SeqCst);
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    type ExecStream = ReceiverStream<Result<v1::ExecOutput, Status>>;

    async fn exec(
        &self,
        request: Request<Streaming<NodeExecInput>>,
    ) -> Result<Response<Self::ExecStream>, Status> {
        let mut inputs = request.into_inner();
        let first = inputs.message().await?.unwrap_or_default();
        if first.secret != "secret-1" {
            return Err(Status::permission_denied("not the node's secret"));
        }
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let execs = Arc::clone(&self.execs);
        execs.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            // Echoes input until the caller is gone.
            while let Ok(Some(message)) = inputs.message().await {
                if let Some(Input::Stdin(data)) = message.input.and_then(|input| input.input) {
                    let output = Some(Output::Stdout(data));
                    let _ = sender.send(Ok(v1::ExecOutput { output })).await;
                }
            }
            sender.closed().await;
            execs.fetch_sub(1, Ordering::SeqCst);
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn csi_control(
        &self,
        _: Request<NodeCsiControlRequest>,
    ) -> Result<Response<NodeCsiControlResponse>, Status> {
        Err(Status::unavailable("this node has no plugin"))
    }

    async fn checks(
        &self,
        request: Request<NodeChecksRequest>,
    ) -> Result<Response<NodeChecksResponse>, Status> {
        let alloc_id = request.into_inner().alloc_id;
        let check = v1::AllocationCheck {
            id: alloc_id,
            status: "success".to_owned(),
            ..v1::AllocationCheck::default()
        };
        let checks = vec![check];
        Ok(Response::new(NodeChecksResponse { checks }))
    }

    async fn restart(
        &self,
        request: Request<NodeRestartRequest>,
    ) -> Result<Response<NodeRestartResponse>, Status> {
        let request = request.into_inner();
        if request.secret != "secret-1" {
            return Err(Status::permission_denied("not the node's secret"));
        }
        self.restarts.fetch_add(1, Ordering::SeqCst);
        match request.task.as_str() {
            "" => Ok(Response::new(NodeRestartResponse {
                tasks: vec!["server".to_owned()],
            })),
            // A connection that ends without an answer.
            _ => Err(Status::unavailable("the connection broke")),
        }
    }

    async fn list_files(
        &self,
        request: Request<NodeListFilesRequest>,
    ) -> Result<Response<v1::ListFilesResponse>, Status> {
        let asked = checked(
            request.get_ref().secret.as_str(),
            request.get_ref().request.clone(),
        )?;
        let file = |name: String| v1::FileInfo {
            name,
            ..v1::FileInfo::default()
        };
        Ok(Response::new(v1::ListFilesResponse {
            files: vec![file(asked.alloc_id), file(asked.path)],
            is_truncated: false,
        }))
    }

    async fn get_file(
        &self,
        request: Request<NodeGetFileRequest>,
    ) -> Result<Response<v1::GetFileResponse>, Status> {
        let asked = checked(
            request.get_ref().secret.as_str(),
            request.get_ref().request.clone(),
        )?;
        Err(Status::permission_denied(format!(
            "{:?} holds secrets",
            asked.path
        )))
    }

    type ReadFileStream = ReceiverStream<Result<v1::FileChunk, Status>>;

    async fn read_file(
        &self,
        request: Request<NodeReadFileRequest>,
    ) -> Result<Response<Self::ReadFileStream>, Status> {
        checked(
            request.get_ref().secret.as_str(),
            request.get_ref().request.clone(),
        )?;
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let files = self.clone();
        tokio::spawn(async move {
            let chunk = || v1::FileChunk {
                data: vec![b'x'; CHUNK],
                ..v1::FileChunk::default()
            };
            while sender.send(Ok(chunk())).await.is_ok() {
                files.chunks.fetch_add(1, Ordering::SeqCst);
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn signal(
        &self,
        request: Request<NodeSignalRequest>,
    ) -> Result<Response<v1::SignalAllocationResponse>, Status> {
        let asked = checked(
            request.get_ref().secret.as_str(),
            request.get_ref().request.clone(),
        )?;
        if asked.task == "server" {
            // A connection that ends without an answer.
            return Err(Status::unavailable("the connection broke"));
        }
        Ok(Response::new(v1::SignalAllocationResponse {
            tasks: vec!["server".to_owned()],
            signal: asked.signal,
        }))
    }

    async fn alloc_stats(
        &self,
        _: Request<NodeAllocStatsRequest>,
    ) -> Result<Response<v1::GetAllocationStatsResponse>, Status> {
        Err(Status::unimplemented("an older agent"))
    }

    async fn host_stats(
        &self,
        request: Request<NodeHostStatsRequest>,
    ) -> Result<Response<v1::GetNodeStatsResponse>, Status> {
        checked(&request.get_ref().secret, Some(()))?;
        let usage = v1::NodeUsage {
            uptime_seconds: 7,
            ..v1::NodeUsage::default()
        };
        let usage = Some(usage);
        Ok(Response::new(v1::GetNodeStatsResponse { usage }))
    }

    async fn get_meta(
        &self,
        request: Request<NodeGetMetaRequest>,
    ) -> Result<Response<v1::GetNodeMetaResponse>, Status> {
        checked(&request.get_ref().secret, Some(()))?;
        let meta = Some(v1::NodeMeta::default());
        Ok(Response::new(v1::GetNodeMetaResponse { meta }))
    }

    async fn apply_meta(
        &self,
        request: Request<NodeApplyMetaRequest>,
    ) -> Result<Response<v1::ApplyNodeMetaResponse>, Status> {
        let asked = checked(
            request.get_ref().secret.as_str(),
            request.get_ref().request.clone(),
        )?;
        let meta = v1::NodeMeta {
            dynamic: asked.set,
            removed: asked.unset,
            ..v1::NodeMeta::default()
        };
        let meta = Some(meta);
        Ok(Response::new(v1::ApplyNodeMetaResponse { meta }))
    }

    async fn refresh(
        &self,
        request: Request<NodeRefreshRequest>,
    ) -> Result<Response<v1::RefreshNodeResponse>, Status> {
        checked(&request.get_ref().secret, Some(()))?;
        let changed = vec!["resources".to_owned()];
        Ok(Response::new(v1::RefreshNodeResponse { changed }))
    }
}

/// Returns the request, if the caller knows the node's secret.
fn checked<T>(secret: &str, request: Option<T>) -> Result<T, Status> {
    if secret != "secret-1" {
        return Err(Status::permission_denied("not the node's secret"));
    }
    request.ok_or_else(|| Status::invalid_argument("no request"))
}

/// A suite with one allocation that runs a task `server` on a node that serves `files`.
pub(crate) async fn suite_with_node(files: &Files) -> (Suite, Node, v1::LogsRequest) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tonic::transport::Server::builder()
        .add_service(NodeOperationsServer::new(files.clone()))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(server);
    suite_with(1, Node { address, ..node(1) }).await
}

/// A suite with gateways and one allocation, whose task `server` runs on this node.
pub(crate) async fn suite_with(gateways: usize, node: Node) -> (Suite, Node, v1::LogsRequest) {
    let suite = Suite::start(gateways).await;
    let job = job("web");
    suite.put_node(&node).await;
    let registered = suite.register(&job).await;
    let placed = alloc(1, &job, &node, registered.index);
    suite.put_alloc(&placed).await;
    let client = AllocClient {
        status: ClientStatus::Running,
        task_states: [("server".to_owned(), TaskState::default())].into(),
        ..AllocClient::default()
    };
    suite
        .put(
            &Key::AllocClient(placed.id),
            &Entity::AllocClient(Box::new(client)),
        )
        .await;
    let request = v1::LogsRequest {
        alloc_id: placed.id.to_string(),
        stream: v1::LogStream::Stdout.into(),
        ..v1::LogsRequest::default()
    };
    (suite, node, request)
}

#[tokio::test]
async fn output_is_relayed_from_the_node_by_the_start_of_the_allocations_id() {
    let (suite, _, request) = suite_with_node(&Files::default()).await;
    let request = v1::LogsRequest {
        alloc_id: request.alloc_id[..8].to_owned(),
        ..request
    };
    let mut chunks = suite
        .allocations(0)
        .logs(ask(request))
        .await
        .unwrap()
        .into_inner();
    let chunk = chunks.message().await.unwrap().unwrap();
    assert_eq!(String::from_utf8(chunk.data).unwrap(), "server:1");
    assert_eq!(chunks.message().await.unwrap(), None);
}

#[tokio::test]
async fn a_caller_that_does_not_read_holds_the_node_back() {
    let files = Files {
        endless: true,
        ..Files::default()
    };
    let (suite, _, request) = suite_with_node(&files).await;
    let mut chunks = suite
        .allocations(0)
        .logs(ask(request))
        .await
        .unwrap()
        .into_inner();
    chunks.message().await.unwrap().unwrap();
    // The transports fill up, then nothing moves: two looks apart see the same number.
    let in_flight = wait_for("the node to be held back", WAIT_LIMIT, async || {
        let before = files.chunks.load(Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        (files.chunks.load(Ordering::SeqCst) == before).then_some(before)
    })
    .await;
    assert!(
        in_flight * CHUNK < 32 << 20,
        "{in_flight} chunks are in flight"
    );
    drop(chunks);
    wait_for("the relay to end", WAIT_LIMIT, async || {
        suite
            .metrics(0)
            .await
            .contains("kafila_api_gateway_log_relays 0\n")
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_refused_request_for_logs_explains_the_reason() {
    let (suite, node, request) = suite_with_node(&Files::default()).await;
    let mut logs = suite.allocations(0);
    let wrong_task = v1::LogsRequest {
        task: "db".to_owned(),
        ..request.clone()
    };
    let status = logs.logs(ask(wrong_task)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status.message().contains("want one of server"),
        "{}",
        status.message()
    );

    let beyond = v1::LogsRequest {
        offset: 101,
        ..request.clone()
    };
    let status = logs.logs(ask(beyond)).await.unwrap_err();
    assert_eq!(
        status.code(),
        Code::OutOfRange,
        "the node's own words: {status}"
    );
    assert!(
        status.message().contains("node n1: offset 101"),
        "{}",
        status.message()
    );

    let gone = Node {
        address: "http://127.0.0.1:1".to_owned(),
        ..node.clone()
    };
    suite.put_node(&gone).await;
    let unreachable = wait_for("the gateway to see the change", WAIT_LIMIT, async || {
        logs.logs(ask(request.clone())).await.err()
    })
    .await;
    assert_eq!(unreachable.code(), Code::Unavailable);
    let text = unreachable.message();
    assert!(
        text.contains("node n1 cannot be reached at http://127.0.0.1:1"),
        "{text}"
    );

    suite
        .put_node(&Node {
            status: NodeStatus::Down,
            ..node
        })
        .await;
    let down = wait_for("the gateway to see the change", WAIT_LIMIT, async || {
        let status = logs.logs(ask(request.clone())).await.unwrap_err();
        status.message().contains("is down").then_some(status)
    })
    .await;
    assert_eq!(down.code(), Code::Unavailable);
}

#[tokio::test]
async fn a_restart_reaches_the_node_once() {
    let files = Files::default();
    let (suite, node, request) = suite_with_node(&files).await;
    let restart = |task: &str| v1::RestartAllocationRequest {
        alloc_id: request.alloc_id[..8].to_owned(),
        task: task.to_owned(),
        all_tasks: false,
    };
    let mut allocations = suite.allocations(0);
    let answer = allocations.restart(ask(restart(""))).await.unwrap();
    assert_eq!(answer.into_inner().tasks, ["server"]);

    // Without an answer it is unknown whether the node has restarted the task.
    let unknown = allocations.restart(ask(restart("server"))).await;
    let unknown = unknown.unwrap_err();
    assert_eq!(unknown.code(), Code::Unknown, "{unknown}");
    assert!(unknown.message().contains("may have been restarted"));
    assert_eq!(files.restarts.load(Ordering::SeqCst), 2);

    let gone = Node {
        address: "http://127.0.0.1:1".to_owned(),
        ..node
    };
    suite.put_node(&gone).await;
    let refused = wait_for("the gateway to see the change", WAIT_LIMIT, async || {
        let refused = allocations.restart(ask(restart(""))).await.err()?;
        (refused.code() == Code::Unavailable).then_some(refused)
    });
    assert!(refused.await.message().contains("nothing was restarted"));
}

#[tokio::test]
async fn a_stopped_allocation_is_marked_once_for_one_request_id() {
    let (suite, _, request) = suite_with_node(&Files::default()).await;
    let stop = v1::StopAllocationRequest {
        alloc_id: request.alloc_id.clone(),
        request_id: "r1".to_owned(),
        no_shutdown_delay: true,
    };
    let mut allocations = suite.allocations(0);
    let first = allocations.stop(ask(stop.clone())).await.unwrap();
    let again = allocations.stop(ask(stop)).await.unwrap();
    assert_eq!(first.into_inner(), again.into_inner());
    let get = v1::GetAllocationRequest {
        alloc_id: request.alloc_id,
        ..v1::GetAllocationRequest::default()
    };
    let stopped = allocations.get(ask(get)).await.unwrap().into_inner();
    let transition = stopped.allocation.unwrap().desired_transition.unwrap();
    assert!(transition.migrate && transition.no_shutdown_delay);
}

#[tokio::test]
async fn a_command_is_relayed_both_ways_and_ends_with_its_caller() {
    let files = Files::default();
    let (suite, _, request) = suite_with_node(&files).await;
    let input = |input| v1::ExecInput { input: Some(input) };
    let start = |task: &str| v1::ExecStart {
        alloc_id: request.alloc_id[..8].to_owned(),
        task: task.to_owned(),
        command: vec!["cat".to_owned()],
        ..v1::ExecStart::default()
    };
    let mut client = suite.allocations(0);
    let unknown = tokio_stream::iter([input(Input::Start(start("db")))]);
    let refused = client.exec(unknown).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused.message().contains("want one of server"),
        "{refused:?}"
    );
    let without_start = tokio_stream::iter([input(Input::Stdin(b"x".to_vec()))]);
    let refused = client.exec(without_start).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);

    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    sender.send(input(Input::Start(start("")))).await.unwrap();
    let stream = client.exec(ReceiverStream::new(receiver)).await.unwrap();
    let mut outputs = stream.into_inner();
    sender
        .send(input(Input::Stdin(b"hello".to_vec())))
        .await
        .unwrap();
    let echoed = outputs.message().await.unwrap().unwrap();
    assert_eq!(echoed.output, Some(Output::Stdout(b"hello".to_vec())));
    assert_eq!(files.execs.load(Ordering::SeqCst), 1);
    drop((outputs, sender));
    wait_for("the command to be told", WAIT_LIMIT, async || {
        (files.execs.load(Ordering::SeqCst) == 0).then_some(())
    })
    .await;
}
