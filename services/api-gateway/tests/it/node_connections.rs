//! Calls of nodes over connections that the nodes open, also through a gateway that does not have the node's stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dial_out::DialOut;
use gateway_calls::Gateways;
use local_state::Identity;
use model::Node;
use proto::internal::v1::node_operations_server::{self, NodeOperationsServer};
use proto::internal::v1::{
    AwaitConnectionsRequest, HeartbeatRequest, OpenConnectionRequest, RelayRequest,
    node_connections_client::NodeConnectionsClient,
};
use proto::v1;
use proto::v1::exec_input::Input;
use proto::v1::exec_output::Output;
use service_kit::server::{ServeOptions, bind, serve};
use service_kit::{CancellationToken, IdSource, Incoming, Transport, request};
use test_kit::wait_for;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::{Code, Status};

use crate::logs::{CHUNK, Files, suite_with};
use crate::support::{Suite, WAIT_LIMIT, ask, node};

/// A node that opens connections to the gateways, until dropped.
struct Machine {
    gateways: Arc<Gateways>,
    identity: Identity,
    drain: CancellationToken,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.drain.cancel();
    }
}

impl Machine {
    /// The first gateway is the one of its session.
    async fn start(addresses: &[&str], node: &Node, files: &Files) -> Self {
        let (server, opened) = mpsc::channel(8);
        // The record of the node has another address.
        let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let incoming = Incoming::new(listener, Transport::PLAINTEXT).with_opened(opened);
        let options = ServeOptions {
            service: "node",
            rpc_services: vec![node_operations_server::SERVICE_NAME],
            descriptors: proto::DESCRIPTORS,
            metrics: None,
            shutdown_grace_period: Duration::from_secs(1),
        };
        let routes = Routes::new(NodeOperationsServer::new(files.clone()));
        let drain = CancellationToken::new();
        tokio::spawn(serve(incoming, routes, options, drain.clone()));
        let addresses = addresses.iter().map(|it| (*it).to_owned()).collect();
        let ids = IdSource::seeded(1);
        let machine = Self {
            gateways: Arc::new(Gateways::new(addresses, ids.clone(), Transport::PLAINTEXT)),
            identity: Identity {
                node_id: node.id,
                secret: node.secret.clone(),
            },
            drain,
        };
        let (gateways, identity) = (Arc::clone(&machine.gateways), machine.identity.clone());
        let drain = machine.drain.clone();
        tokio::spawn(async move {
            let dialing = DialOut {
                gateways: &gateways,
                identity: &identity,
                server,
                peer: Transport::PLAINTEXT.peer_of(identity::Role::Gateway),
                metrics: &dial_out::Metrics::default(),
            };
            dialing.run(ids.rng(), drain).await;
        });
        machine
    }
}

/// Waits until the gateway has the streams of `count` nodes.
async fn until_awaiting(suite: &Suite, gateway: usize, count: usize) {
    let line = format!("kafila_api_gateway_awaiting_nodes {count}\n");
    wait_for("the stream of the node", WAIT_LIMIT, async || {
        suite.metrics(gateway).await.contains(&line).then_some(())
    })
    .await;
}

async fn output(suite: &Suite, gateway: usize, asked: &v1::LogsRequest) -> Result<String, Status> {
    let mut logs = suite.allocations(gateway);
    let mut chunks = logs.logs(ask(asked.clone())).await?.into_inner();
    let chunk = chunks.message().await?.unwrap();
    assert_eq!(chunks.message().await?, None);
    Ok(String::from_utf8(chunk.data).unwrap())
}

fn restart(asked: &v1::LogsRequest, task: &str) -> v1::RestartAllocationRequest {
    v1::RestartAllocationRequest {
        alloc_id: asked.alloc_id.clone(),
        task: task.to_owned(),
        all_tasks: false,
    }
}

/// Runs a command that echoes its input; returns the echo.
async fn echo(suite: &Suite, gateway: usize, asked: &v1::LogsRequest, bytes: &[u8]) -> Vec<u8> {
    let (inputs, receiver) = mpsc::channel(4);
    let send = |input| {
        inputs
            .try_send(v1::ExecInput { input: Some(input) })
            .unwrap()
    };
    send(Input::Start(v1::ExecStart {
        alloc_id: asked.alloc_id.clone(),
        command: vec!["cat".to_owned()],
        ..v1::ExecStart::default()
    }));
    send(Input::Stdin(bytes.to_vec()));
    let mut allocations = suite.allocations(gateway);
    let outputs = allocations.exec(ask(ReceiverStream::new(receiver)));
    let mut outputs = outputs.await.unwrap().into_inner();
    match outputs.message().await.unwrap().unwrap().output {
        Some(Output::Stdout(data)) => data,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_gateway_calls_a_node_that_none_can_dial() {
    let files = Files::default();
    // Nothing listens at the node's address.
    let (suite, node, asked) = suite_with(2, node(1)).await;
    let _machine = Machine::start(&[suite.address(0)], &node, &files).await;
    until_awaiting(&suite, 0, 1).await;
    for gateway in [0, 1] {
        let logs = wait_for(
            "the node on the gateway's replica",
            WAIT_LIMIT,
            async || output(&suite, gateway, &asked).await.ok(),
        );
        assert_eq!(logs.await, "server:1", "gateway {gateway}");
        let sent = vec![b'x'; 200_000];
        assert_eq!(echo(&suite, gateway, &asked, &sent).await, sent);
        let mut allocations = suite.allocations(gateway);
        let answer = allocations.restart(ask(restart(&asked, ""))).await.unwrap();
        assert_eq!(answer.into_inner().tasks, ["server"]);
        assert_eq!(files.restarts.load(Ordering::SeqCst), 2 * gateway + 1);
        // A call without an answer is not made again on another route.
        let open = allocations.restart(ask(restart(&asked, "server"))).await;
        assert_eq!(open.unwrap_err().code(), Code::Unknown);
        assert_eq!(files.restarts.load(Ordering::SeqCst), 2 * gateway + 2);
    }
    // The caller's end is the command's end, through both gateways.
    wait_for("the end of the commands", WAIT_LIMIT, async || {
        (files.execs.load(Ordering::SeqCst) == 0).then_some(())
    })
    .await;
    for gateway in [0, 1] {
        wait_for("the end of the connections", WAIT_LIMIT, async || {
            let metrics = suite.metrics(gateway).await;
            let closed = "kafila_api_gateway_node_connections 0\n";
            metrics.contains(closed).then_some(())
        })
        .await;
    }
    let metrics = suite.metrics(0).await;
    let opened = "kafila_api_gateway_node_connection_requests_total{outcome=\"opened\"}";
    assert!(metrics.contains(opened), "{metrics}");
    let metrics = suite.metrics(1).await;
    let relayed = "kafila_api_gateway_node_connection_relays_total{outcome=\"opened\"}";
    assert!(metrics.contains(relayed), "{metrics}");
}

#[tokio::test]
async fn a_node_that_says_so_is_not_dialed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = Node {
        address: format!("http://{}", listener.local_addr().unwrap()),
        dials_out: true,
        ..node(1)
    };
    let (suite, node, asked) = suite_with(1, node).await;
    let refused = output(&suite, 0, &asked).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    let text = refused.message();
    assert!(
        text.contains("it is not dialed (`dial_out`), and the node has no stream at any gateway"),
        "{text}"
    );
    let _machine = Machine::start(&[suite.address(0)], &node, &Files::default()).await;
    until_awaiting(&suite, 0, 1).await;
    assert_eq!(output(&suite, 0, &asked).await.unwrap(), "server:1");
    let dialed = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(dialed.is_err(), "{dialed:?}");
}

#[tokio::test]
async fn a_node_without_any_way_is_explained() {
    let (suite, _, asked) = suite_with(2, node(1)).await;
    let refused = output(&suite, 0, &asked).await.unwrap_err();
    let text = refused.message();
    for part in [
        "node n1 cannot be reached at http://127.0.0.1:1: dialing failed (",
        "onnection refused",
        "and the node has no stream at any gateway",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn a_stream_follows_its_node_to_another_gateway() {
    let files = Files::default();
    let (suite, node, asked) = suite_with(2, node(1)).await;
    let addresses = [suite.address(0), suite.address(1)];
    let machine = Machine::start(&addresses, &node, &files).await;
    until_awaiting(&suite, 0, 1).await;
    suite.gateways[0].drain.cancel();
    // The node's other loops notice that the gateway has gone.
    machine.gateways.leave(addresses[0]);
    until_awaiting(&suite, 1, 1).await;
    assert_eq!(output(&suite, 1, &asked).await.unwrap(), "server:1");
}

#[tokio::test]
async fn unread_output_of_relayed_calls_does_not_delay_heartbeats() {
    let files = Files {
        endless: true,
        ..Files::default()
    };
    let (suite, node, asked) = suite_with(2, node(1)).await;
    let machine = Machine::start(&[suite.address(0)], &node, &files).await;
    until_awaiting(&suite, 0, 1).await;
    let mut unread = Vec::new();
    for _ in 0..4 {
        let mut allocations = suite.allocations(1);
        let logs = allocations.logs(ask(asked.clone())).await.unwrap();
        unread.push(logs.into_inner());
    }
    let settled = wait_for("the node to be held back", WAIT_LIMIT, async || {
        let before = files.chunks.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(200)).await;
        (before > 0 && files.chunks.load(Ordering::SeqCst) == before).then_some(before)
    })
    .await;
    assert!(settled * CHUNK < 64 << 20, "{settled} chunks are in flight");
    // On the connection that carries the unread output.
    let beat = HeartbeatRequest {
        node_id: machine.identity.node_id.to_string(),
        secret: machine.identity.secret.clone(),
    };
    let answer = machine
        .gateways
        .call(async |mut client| client.heartbeat(request(beat, WAIT_LIMIT)).await);
    let answer = tokio::time::timeout(Duration::from_secs(5), answer).await;
    // The gateway has no cluster-controller to pass heartbeats on to; it answers at once all the same.
    let answer = answer.expect("heartbeats are not delayed");
    assert!(answer.is_ok() || answer.is_err_and(|it| it.code() == Code::Unavailable));
    drop(unread);
}

#[tokio::test]
async fn a_node_opens_only_the_connections_that_it_was_asked_for() {
    let (suite, node_1, asked) = suite_with(1, node(1)).await;
    let node_2 = node(2);
    suite.put_node(&node_2).await;
    let awaiting = |node: &Node, secret: &str| AwaitConnectionsRequest {
        node_id: node.id.to_string(),
        secret: secret.to_owned(),
    };
    let mut sessions = suite.sessions(0);
    let foreign = sessions.await_connections(ask(awaiting(&node_1, &node_2.secret)));
    assert_eq!(foreign.await.unwrap_err().code(), Code::PermissionDenied);
    let requests = sessions.await_connections(ask(awaiting(&node_1, &node_1.secret)));
    let mut requests = requests.await.unwrap().into_inner();

    let caller = async { output(&suite, 0, &asked).await.unwrap_err() };
    let opening = async {
        let request = requests.message().await.unwrap().unwrap();
        for (node, id) in [
            (&node_2, request.connection_id.as_str()),
            (&node_1, "00000000000000000000000000000007"),
            (&node_1, "7"),
        ] {
            let first = OpenConnectionRequest {
                node_id: node.id.to_string(),
                secret: node.secret.clone(),
                connection_id: id.to_owned(),
                data: Vec::new(),
            };
            let mut sessions = suite.sessions(0);
            let opened = sessions.open_connection(ask(tokio_stream::iter([first])));
            assert_eq!(opened.await.unwrap_err().code(), Code::NotFound, "{id}");
        }
    };
    let (timed_out, ()) = tokio::join!(caller, opening);
    let text = timed_out.message();
    assert!(
        text.contains("has not opened a connection within 5 s"),
        "{text}"
    );

    // A newer stream replaces the older one.
    let newer = sessions.await_connections(ask(awaiting(&node_1, &node_1.secret)));
    let _newer = newer.await.unwrap();
    let ended = requests.message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Aborted, "{ended}");
}

#[tokio::test]
async fn the_stream_of_a_revoked_node_is_of_no_use() {
    let (suite, node, asked) = suite_with(1, node(1)).await;
    let _machine = Machine::start(&[suite.address(0)], &node, &Files::default()).await;
    until_awaiting(&suite, 0, 1).await;
    let revoked = v1::RevokeNodeRequest {
        node_id: node.id.to_string(),
        reason: String::new(),
    };
    suite.nodes(0).revoke(ask(revoked)).await.unwrap();
    let refused = wait_for("the revocation on the replica", WAIT_LIMIT, async || {
        output(&suite, 0, &asked).await.err()
    })
    .await;
    let text = refused.message();
    assert!(text.contains("the node has no stream"), "{text}");
    // The node opens it again, and is refused.
    until_awaiting(&suite, 0, 0).await;
}

#[tokio::test]
async fn a_gateway_relays_to_its_own_nodes_only() {
    let (suite, node, _) = suite_with(2, node(1)).await;
    let _machine = Machine::start(&[suite.address(0)], &node, &Files::default()).await;
    until_awaiting(&suite, 0, 1).await;
    // It does not pass the request on to the gateway that has the node's stream.
    for (node_id, code) in [
        (node.id.to_string(), Code::NotFound),
        ("n1".to_owned(), Code::InvalidArgument),
    ] {
        let first = RelayRequest {
            node_id,
            data: Vec::new(),
        };
        let mut client = NodeConnectionsClient::new(suite.channel(1));
        let relayed = client.relay(ask(tokio_stream::iter([first]))).await;
        assert_eq!(relayed.unwrap_err().code(), code);
    }
}
