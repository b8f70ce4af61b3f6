//! Logs of other processes, which the gateway relays.

use std::sync::{Arc, Mutex};

use proto::v1;
use proto::v1::agent_server::{Agent, AgentServer};
use test_kit::wait_for;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status};

use crate::support::{Suite, WAIT_LIMIT, ask, node};

/// A process with one line in its log, which keeps the requests it gets.
#[derive(Clone, Default)]
struct Process {
    requests: Arc<Mutex<Vec<v1::SetLogLevelRequest>>>,
}

#[tonic::async_trait]
impl Agent for Process {
    type MonitorStream = tokio_stream::Iter<std::vec::IntoIter<Result<v1::LogLines, Status>>>;

    async fn monitor(
        &self,
        request: Request<v1::MonitorRequest>,
    ) -> Result<Response<Self::MonitorStream>, Status> {
        let request = request.into_inner();
        assert_eq!(request.target, None);
        let line = v1::LogLine {
            message: format!("{} {}", request.filter, request.recent),
            ..v1::LogLine::default()
        };
        let lines = v1::LogLines {
            lines: vec![line],
            dropped: 0,
        };
        let broken = Err(Status::unknown("the connection broke"));
        Ok(Response::new(tokio_stream::iter(vec![Ok(lines), broken])))
    }

    async fn get_log_level(
        &self,
        _: Request<v1::GetLogLevelRequest>,
    ) -> Result<Response<v1::GetLogLevelResponse>, Status> {
        Err(Status::permission_denied("no"))
    }

    async fn set_log_level(
        &self,
        request: Request<v1::SetLogLevelRequest>,
    ) -> Result<Response<v1::SetLogLevelResponse>, Status> {
        let request = request.into_inner();
        self.requests.lock().unwrap().push(request.clone());
        if request.filter == "loud" {
            return Err(proto::status::invalid_field("filter", "no level"));
        }
        let previous = "info".to_owned();
        let level = None;
        Ok(Response::new(v1::SetLogLevelResponse { previous, level }))
    }
}

impl Process {
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = tonic::transport::Server::builder()
            .add_service(AgentServer::new(self.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(server);
        address
    }
}

fn service(name: &str) -> Option<v1::AgentTarget> {
    Some(v1::AgentTarget {
        service: name.to_owned(),
        ..v1::AgentTarget::default()
    })
}

fn node_id(id: &str) -> Option<v1::AgentTarget> {
    Some(v1::AgentTarget {
        node_id: id.to_owned(),
        ..v1::AgentTarget::default()
    })
}

fn process(address: &str) -> Option<v1::AgentTarget> {
    Some(v1::AgentTarget {
        process: address.to_owned(),
        ..v1::AgentTarget::default()
    })
}

fn set(target: Option<v1::AgentTarget>, filter: &str) -> Request<v1::SetLogLevelRequest> {
    ask(v1::SetLogLevelRequest {
        target,
        filter: filter.to_owned(),
        expires_after: None,
    })
}

/// Waits until the gateway's replica has an object that was put into the store.
async fn until_known(suite: &Suite, target: Option<v1::AgentTarget>) {
    wait_for("the target to be known", WAIT_LIMIT, async || {
        let asked = ask(v1::GetLogLevelRequest {
            target: target.clone(),
        });
        let status = suite.agent(0).get_log_level(asked).await.unwrap_err();
        (status.code() == Code::PermissionDenied).then_some(())
    })
    .await;
}

#[tokio::test]
async fn requests_reach_the_leader_and_the_node() {
    let suite = Suite::start(1).await;
    let (leader, machine) = (Process::default(), Process::default());
    suite.elect("plan-applier", &leader.start().await).await;
    let one = model::Node {
        address: machine.start().await,
        ..node(1)
    };
    suite.put_node(&one).await;
    let id = one.id.to_string();
    until_known(&suite, service("plan-applier")).await;
    until_known(&suite, node_id(&id[..8])).await;

    let mut agent = suite.agent(0);
    agent
        .set_log_level(set(service("plan-applier"), "debug"))
        .await
        .unwrap();
    agent
        .set_log_level(set(node_id(&id), "warn"))
        .await
        .unwrap();
    for (process, filter) in [(&leader, "debug"), (&machine, "warn")] {
        let requests = process.requests.lock().unwrap();
        assert_eq!(requests.len(), 1);
        assert_eq!(
            (requests[0].target.as_ref(), requests[0].filter.as_str()),
            (None, filter)
        );
    }
    let request = v1::MonitorRequest {
        target: node_id(&id),
        filter: "trace".to_owned(),
        recent: 9,
        recent_only: true,
    };
    let mut lines = agent.monitor(ask(request)).await.unwrap().into_inner();
    let first = lines.message().await.unwrap().unwrap();
    assert_eq!(first.lines[0].message, "trace 9");
    let broken = lines.message().await.unwrap_err();
    assert_eq!(broken.code(), Code::Unavailable);
    assert!(
        broken
            .message()
            .contains("cannot be reached: the connection broke"),
        "{broken}"
    );
    // The refusal of the process comes with its field.
    let refused = agent
        .set_log_level(set(service("plan-applier"), "loud"))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("filter"), "{refused}");
}

#[tokio::test]
async fn an_unknown_process_is_refused_with_the_way_to_it() {
    let suite = Suite::start(1).await;
    suite.elect("eval-broker", "http://127.0.0.1:1").await;
    wait_for("the leader to be known", WAIT_LIMIT, async || {
        let asked = set(service("eval-broker"), "info");
        let status = suite.agent(0).set_log_level(asked).await.unwrap_err();
        status.message().contains("cannot be reached").then_some(())
    })
    .await;
    let both = Some(v1::AgentTarget {
        service: "plan-applier".to_owned(),
        node_id: "4d".to_owned(),
        ..v1::AgentTarget::default()
    });
    let all = both.clone().map(|both| v1::AgentTarget {
        process: "10.0.0.7:4648".to_owned(),
        ..both
    });
    for (target, code, part) in [
        (
            service("plan-applier"),
            Code::Unavailable,
            "no plan-applier leads",
        ),
        (
            service("scheduler-worker"),
            Code::InvalidArgument,
            "-process",
        ),
        (
            service("client-node"),
            Code::InvalidArgument,
            "target.node_id",
        ),
        (service("broker"), Code::InvalidArgument, "eval-broker"),
        (both, Code::InvalidArgument, "not both"),
        (all, Code::InvalidArgument, "target.process"),
        (
            process("10.0.0.7:4648"),
            Code::NotFound,
            "operator processes",
        ),
        (node_id("4d2ba53b"), Code::NotFound, "4d2ba53b"),
        // Not the log of this test program.
        (service("api-gateway"), Code::FailedPrecondition, "no log"),
        (None, Code::FailedPrecondition, "no log"),
    ] {
        let status = suite
            .agent(0)
            .set_log_level(set(target.clone(), "info"))
            .await
            .unwrap_err();
        assert_eq!(status.code(), code, "{target:?}: {status}");
        assert!(status.message().contains(part), "{target:?}: {status}");
    }
}

#[tokio::test]
async fn a_registered_process_is_listed_and_reached_by_its_address() {
    let suite = Suite::start(2).await;
    let worker = Process::default();
    let address = worker.start().await;
    let register = async |service: &str, address: &str| {
        let key = state::Key::Process(model::ProcessKey {
            service: service.to_owned(),
            address: address.to_owned(),
        });
        let version = "9.9.9".to_owned();
        let info = state::Entity::Process(model::ProcessInfo { version });
        suite.put(&key, &info).await;
    };
    register("scheduler-worker", &address).await;
    register("plan-applier", "http://10.0.0.1:4648").await;
    register("plan-applier", "http://10.0.0.2:4648").await;
    suite.elect("plan-applier", "http://10.0.0.2:4648").await;

    // With the gateways, which register themselves.
    let listed = wait_for("all processes", WAIT_LIMIT, async || {
        let asked = ask(v1::ListProcessesRequest::default());
        let answer = suite.operator(0).list_processes(asked).await.unwrap();
        let listed = answer.into_inner().processes;
        (listed.len() == 5).then_some(listed)
    })
    .await;
    let rows: Vec<(&str, &str, bool)> = listed
        .iter()
        .map(|it| (&*it.service, &*it.address, it.is_leader))
        .collect();
    let gateways: Vec<&str> = rows[..2].iter().map(|row| row.1).collect();
    for number in 0..2 {
        assert!(gateways.contains(&suite.address(number)), "{rows:?}");
    }
    let expected = [
        ("plan-applier", "http://10.0.0.1:4648", false),
        ("plan-applier", "http://10.0.0.2:4648", true),
        ("scheduler-worker", &*address, false),
    ];
    assert_eq!(rows[2..], expected);
    assert_eq!(listed[4].version, "9.9.9");

    let host = address.strip_prefix("http://").unwrap();
    let mut agent = suite.agent(0);
    for target in [&*address, host] {
        agent
            .set_log_level(set(process(target), "debug"))
            .await
            .unwrap();
    }
    assert_eq!(worker.requests.lock().unwrap().len(), 2);
    // This gateway and the other one: the test program has no log, so both refuse.
    for number in 0..2 {
        let asked = set(process(suite.address(number)), "debug");
        let refused = agent.set_log_level(asked).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        let is_other = refused.message().contains("the api-gateway at");
        assert_eq!(is_other, number == 1, "{refused}");
    }
}
