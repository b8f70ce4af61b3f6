//! Heartbeats reach the leader of the cluster-controller, also after a change of leaders.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proto::internal::v1::liveness_server::{Liveness, LivenessServer};
use proto::internal::v1::{HeartbeatRequest, LivenessAck, NodesAlive};
use service_kit::CancellationToken;
use test_kit::wait_for;
use tokio::net::TcpListener;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

use crate::sessions::register;
use crate::support::{Suite, WAIT_LIMIT, ask, node};

/// A controller that records the nodes it is told of.
#[derive(Clone, Default)]
struct Controller {
    alive: Arc<Mutex<BTreeSet<String>>>,
    /// Answers nothing, as one that has lost its leadership and hangs.
    mute: bool,
}

#[tonic::async_trait]
impl Liveness for Controller {
    type ReportStream = ReceiverStream<Result<LivenessAck, Status>>;

    async fn report(
        &self,
        request: Request<Streaming<NodesAlive>>,
    ) -> Result<Response<Self::ReportStream>, Status> {
        let mut messages = request.into_inner();
        let (sender, receiver) = tokio::sync::mpsc::channel(8);
        let controller = self.clone();
        tokio::spawn(async move {
            while let Some(Ok(message)) = messages.next().await {
                if controller.mute {
                    continue;
                }
                controller.alive.lock().unwrap().extend(message.node_ids);
                let ack = LivenessAck {
                    sequence: message.sequence,
                };
                if sender.send(Ok(ack)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

impl Controller {
    async fn serve(&self) -> (String, CancellationToken) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let server = tonic::transport::Server::builder()
            .add_service(LivenessServer::new(self.clone()))
            .serve_with_incoming_shutdown(
                TcpListenerStream::new(listener),
                stop.clone().cancelled_owned(),
            );
        tokio::spawn(server);
        (address, stop)
    }

    async fn heard(&self, id: &str) {
        wait_for("the heartbeat to arrive", WAIT_LIMIT, async || {
            self.alive.lock().unwrap().contains(id).then_some(())
        })
        .await;
    }
}

async fn beat(suite: &Suite, node: &model::Node) {
    let request = HeartbeatRequest {
        node_id: node.id.to_string(),
        secret: node.secret.clone(),
    };
    suite.sessions(0).heartbeat(ask(request)).await.unwrap();
}

#[tokio::test]
async fn heartbeats_reach_the_leader_and_the_next_one_too() {
    let (suite, first, second) = (Suite::start(1).await, node(1), node(2));
    let controllers = [Controller::default(), Controller::default()];
    let (address, _stop) = controllers[0].serve().await;
    suite.elect("cluster-controller", &address).await;
    // A registration says that the node lives.
    register(&suite, 0, &first).await.unwrap();
    controllers[0].heard(&first.id.to_string()).await;

    let (address, _stop) = controllers[1].serve().await;
    suite.elect("cluster-controller", &address).await;
    register(&suite, 0, &second).await.unwrap();
    for node in [&first, &second] {
        beat(&suite, node).await;
        controllers[1].heard(&node.id.to_string()).await;
    }
}

#[tokio::test]
async fn a_report_without_an_answer_is_sent_to_the_next_leader() {
    let (suite, node) = (Suite::start(1).await, node(1));
    let mute = Controller {
        mute: true,
        ..Controller::default()
    };
    let (address, _stop) = mute.serve().await;
    suite.elect("cluster-controller", &address).await;
    register(&suite, 0, &node).await.unwrap();
    let line = "kafila_api_gateway_liveness_messages_total 1\n";
    wait_for("the message to be sent", WAIT_LIMIT, async || {
        suite.metrics(0).await.contains(line).then_some(())
    })
    .await;
    let next = Controller::default();
    let (address, _stop) = next.serve().await;
    suite.elect("cluster-controller", &address).await;
    next.heard(&node.id.to_string()).await;
}
