//! The stream of one node's services: the instances of the names that it asks for, whenever they change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use admission::nodes::{look_ups, revocation};
use api_view::service_index::{Name, ServiceIndex, name};
use futures::Stream;
use futures::stream::unfold;
use gateway_core::{Error, GaugeGuard};
use model::NodeId;
use proto::internal::v1::{
    ServiceInstances, WatchServicesRequest, WatchServicesResponse, WatchedService,
};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval_at};
use tonic::{Status, Streaming};

use crate::node_gateway::NodeGateway;

/// Names of one stream; the node asks for no more.
const NAMES_MAX: usize = 1_000;
/// Interval of responses without a change, by which a node knows that its answers are current.
const BEAT: Duration = Duration::from_secs(10);

/// Opens the stream of an authenticated node.
///
/// # Errors
/// The first request has too many names.
pub(crate) fn open(
    gateway: Arc<NodeGateway>,
    node_id: NodeId,
    first: WatchServicesRequest,
    requests: Streaming<WatchServicesRequest>,
) -> Result<impl Stream<Item = Result<WatchServicesResponse, Status>> + Send + use<>, Error> {
    let open = GaugeGuard::new(&gateway.metrics.service_streams);
    let mut beats = interval_at(tokio::time::Instant::now() + BEAT, BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch {
        rounds: gateway.services.subscribe(),
        gateway,
        node_id,
        names: BTreeMap::new(),
        sent: BTreeMap::new(),
        is_new: true,
        requests,
        beats,
        _open: open,
    };
    watch.ask(first.services)?;
    Ok(unfold(Some(watch), next_response))
}

/// One node's stream.
struct Watch {
    gateway: Arc<NodeGateway>,
    node_id: NodeId,
    /// Key → the name as the node wrote it.
    names: BTreeMap<Name, WatchedService>,
    sent: BTreeMap<Name, Sent>,
    /// The names have changed.
    is_new: bool,
    requests: Streaming<WatchServicesRequest>,
    rounds: watch::Receiver<u64>,
    beats: Interval,
    _open: GaugeGuard,
}

/// The last answer for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sent {
    /// As of this number of the index.
    Instances(u64),
    Refused,
}

async fn next_response(
    watch: Option<Watch>,
) -> Option<(Result<WatchServicesResponse, Status>, Option<Watch>)> {
    let mut watch = watch?;
    match watch.next().await {
        Ok(response) => response.map(|response| (Ok(response), Some(watch))),
        Err(error) => Some((Err(error.into()), None)),
    }
}

impl Watch {
    /// Waits for the next response; `None`: the node has ended the stream.
    async fn next(&mut self) -> Result<Option<WatchServicesResponse>, Error> {
        loop {
            let mut is_beat = false;
            if !std::mem::take(&mut self.is_new) {
                tokio::select! {
                    () = self.gateway.drain.cancelled() => return Err(Error::draining()),
                    request = self.requests.message() => match request {
                        Ok(Some(request)) => self.ask(request.services)?,
                        Ok(None) | Err(_) => return Ok(None),
                    },
                    changed = self.rounds.changed() => {
                        if changed.is_err() {
                            return Err(Error::draining());
                        }
                    }
                    _ = self.beats.tick() => is_beat = true,
                }
            }
            let snapshot = self.gateway.core.replica.snapshot();
            revocation::check(&snapshot, self.node_id)?;
            let readable = look_ups::namespaces(&snapshot, self.node_id);
            let gateway = Arc::clone(&self.gateway);
            let changed = self.changed(&gateway.services.read(), &readable);
            if is_beat || !changed.is_empty() {
                self.beats.reset();
                return Ok(Some(WatchServicesResponse { changed }));
            }
        }
    }

    /// Takes the names of a request.
    fn ask(&mut self, services: Vec<WatchedService>) -> Result<(), Error> {
        if services.len() > NAMES_MAX {
            let message = format!("has {} names: want at most {NAMES_MAX}", services.len());
            return Err(Error::invalid_field("services", message));
        }
        let keyed = services.into_iter();
        self.names = keyed
            .map(|service| (name(&service.namespace, &service.name), service))
            .collect();
        self.sent.retain(|name, _| self.names.contains_key(name));
        self.is_new = true;
        Ok(())
    }

    /// Returns the answers that the node does not have.
    fn changed(
        &mut self,
        index: &ServiceIndex,
        readable: &BTreeSet<String>,
    ) -> Vec<ServiceInstances> {
        let mut changed = Vec::new();
        for (name, service) in &self.names {
            let is_readable = readable.contains(&name.0);
            let now = if is_readable {
                Sent::Instances(index.changed_at(name))
            } else {
                Sent::Refused
            };
            if self.sent.get(name) == Some(&now) {
                continue;
            }
            self.sent.insert(name.clone(), now);
            changed.push(ServiceInstances {
                service: Some(service.clone()),
                instances: if is_readable {
                    index.instances(name)
                } else {
                    Vec::new()
                },
                refusal: if is_readable {
                    String::new()
                } else {
                    format!(
                        "node {} runs no allocation of namespace {:?}: it looks up services of the namespaces \
                         of its own allocations",
                        self.node_id, service.namespace
                    )
                },
            });
        }
        changed
    }
}
