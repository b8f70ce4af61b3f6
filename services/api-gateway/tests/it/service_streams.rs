//! Streams of services: the instances of the names that a node asks for, as they change.

use model::{
    AllocClient, AllocServices, Allocation, ClientStatus, Node, ServiceHealth, ServiceRegistration,
};
use proto::internal::v1::{
    ServiceInstances, WatchServicesRequest, WatchServicesResponse, WatchedService,
};
use state::{Entity, Key};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::sessions::register;
use crate::support::{Suite, WAIT_LIMIT, alloc, ask, job, node};

/// The node's end of a stream.
struct Stream {
    requests: mpsc::Sender<WatchServicesRequest>,
    responses: Streaming<WatchServicesResponse>,
}

fn names(names: &[(&str, &str)]) -> Vec<WatchedService> {
    let of = |(namespace, name): &(&str, &str)| WatchedService {
        namespace: (*namespace).to_owned(),
        name: (*name).to_owned(),
    };
    names.iter().map(of).collect()
}

impl Stream {
    async fn open(suite: &Suite, node: &Node, asked: &[(&str, &str)]) -> Result<Self, Status> {
        let (requests, receiver) = mpsc::channel(4);
        let first = WatchServicesRequest {
            node_id: node.id.to_string(),
            secret: node.secret.clone(),
            services: names(asked),
        };
        requests.send(first).await.unwrap();
        let mut sessions = suite.sessions(0);
        let opened = sessions
            .watch_services(ask(ReceiverStream::new(receiver)))
            .await?;
        Ok(Self {
            requests,
            responses: opened.into_inner(),
        })
    }

    async fn ask(&self, asked: &[(&str, &str)]) {
        let request = WatchServicesRequest {
            services: names(asked),
            ..WatchServicesRequest::default()
        };
        self.requests.send(request).await.unwrap();
    }

    /// Returns the next changes; a response without a change is none.
    async fn next(&mut self) -> Vec<ServiceInstances> {
        let next = async {
            loop {
                let response = self.responses.message().await.unwrap().unwrap();
                if !response.changed.is_empty() {
                    return response.changed;
                }
            }
        };
        tokio::time::timeout(WAIT_LIMIT, next).await.unwrap()
    }

    /// Waits for a change of one service; returns its name and the addresses of its instances, or the
    /// refusal.
    async fn one(&mut self) -> (String, Vec<String>) {
        let mut changed = self.next().await;
        assert_eq!(changed.len(), 1, "{changed:?}");
        let changed = changed.remove(0);
        let name = changed.service.unwrap().name;
        if !changed.refusal.is_empty() {
            return (name, vec![changed.refusal]);
        }
        let shown = changed.instances.into_iter();
        let shown =
            shown.map(|it| format!("{}:{} {} {}", it.address, it.port, it.node_name, it.health));
        (name, shown.collect())
    }
}

async fn put_services(suite: &Suite, alloc: &Allocation, health: ServiceHealth) {
    let services = AllocServices {
        registrations: vec![ServiceRegistration {
            id: "_nomad-task-x".to_owned(),
            name: "Web".to_owned(),
            address: "10.0.0.7".to_owned(),
            port: 25_000,
            health,
            ..ServiceRegistration::default()
        }],
        deleted: Vec::new(),
    };
    let entity = Entity::Services(Box::new(services));
    suite.put(&Key::Services(alloc.id), &entity).await;
}

async fn put_status(suite: &Suite, alloc: &Allocation, status: ClientStatus) {
    let client = AllocClient {
        status,
        ..AllocClient::default()
    };
    let entity = Entity::AllocClient(Box::new(client));
    suite.put(&Key::AllocClient(alloc.id), &entity).await;
}

#[tokio::test]
async fn a_node_gets_the_instances_of_its_names_and_their_changes() {
    let (suite, node, job) = (Suite::start(1).await, node(1), job("web"));
    register(&suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    let placed = alloc(1, &job, &node, registered.index);
    suite.put_alloc(&placed).await;
    put_status(&suite, &placed, ClientStatus::Running).await;
    let mut stream = Stream::open(&suite, &node, &[("default", "web")])
        .await
        .unwrap();
    // The gateway may see the allocation a moment later, and refuses the name before.
    let mut first = stream.one().await;
    if first.1 != [""; 0] {
        assert!(
            first.1[0].contains("runs no allocation of namespace"),
            "{first:?}"
        );
        first = stream.one().await;
    }
    assert_eq!(first, ("web".to_owned(), vec![]));
    let shown = |health: &str| vec![format!("10.0.0.7:25000 {} {health}", node.name)];
    for (health, text) in [
        (ServiceHealth::Pending, "pending"),
        (ServiceHealth::Passing, "passing"),
    ] {
        put_services(&suite, &placed, health).await;
        assert_eq!(stream.one().await, ("web".to_owned(), shown(text)));
    }
    // Another name, in the case that the node wrote; the known one is not sent again.
    stream.ask(&[("default", "web"), ("default", "WEB2")]).await;
    assert_eq!(stream.one().await, ("WEB2".to_owned(), vec![]));
    put_status(&suite, &placed, ClientStatus::Complete).await;
    // With its last allocation, the node may not ask for the namespace any more.
    let ended = stream.next().await;
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert!(
        ended
            .iter()
            .all(|it| !it.refusal.is_empty() && it.instances.is_empty())
    );
}

#[tokio::test]
async fn a_name_in_a_namespace_without_an_allocation_of_the_node_is_refused() {
    let (suite, node) = (Suite::start(1).await, node(1));
    register(&suite, 0, &node).await.unwrap();
    let mut stream = Stream::open(&suite, &node, &[("prod", "web")])
        .await
        .unwrap();
    let (name, refusal) = stream.one().await;
    assert_eq!(name, "web");
    assert!(
        refusal[0].contains("runs no allocation of namespace \"prod\""),
        "{refusal:?}"
    );
}

#[tokio::test]
async fn a_stream_needs_the_nodes_secret_and_few_names() {
    let (suite, node) = (Suite::start(1).await, node(1));
    register(&suite, 0, &node).await.unwrap();
    let other = Node {
        secret: "wrong".to_owned(),
        ..node.clone()
    };
    let refused = Stream::open(&suite, &other, &[]).await.err().unwrap();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    let many: Vec<(&str, &str)> = vec![("default", "web"); 1_001];
    let refused = Stream::open(&suite, &node, &many).await.err().unwrap();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert!(refused.message().contains("at most 1000"), "{refused:?}");
}
