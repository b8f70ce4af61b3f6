//! Subscription to the services that the node looks up: one stream for all names, while there are any.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::poll_fn;
use gateway_calls::{Gateways, Retry, cause, naming};
use local_state::Identity;
use model::ServiceHealth;
use proto::internal::v1::{
    ServiceInstance, WatchServicesRequest, WatchServicesResponse, WatchedService,
};
use rand::rngs::StdRng;
use service_kit::{Backoff, CancellationToken, request};
use service_watch::{Answer, Instance, ServiceName, Services};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};
use tonic::{Status, Streaming};

/// Timeout for the start of a stream.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Silence after which a stream is broken: three of the gateway's intervals.
const SILENCE: Duration = Duration::from_secs(30);
/// Interval in which names without questions are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(30);
/// Sets of names that wait for the stream; a newer one replaces those before it.
const REQUESTS: usize = 2;

/// The subscription of one node.
#[derive(Clone, Copy)]
pub struct Subscription<'a> {
    pub gateways: &'a Gateways,
    pub identity: &'a Identity,
    /// The names to subscribe to, and the answers.
    pub services: &'a Services,
    /// Notified when a gateway does not know the node, which has to register again.
    pub unknown: &'a Notify,
}

impl<'a> Subscription<'a> {
    /// Follows until `ended`, with failover between gateways.
    pub fn run(self, rng: StdRng, ended: CancellationToken) -> BoxFuture<'a, ()> {
        Box::pin(self.follow_until(rng, ended))
    }

    async fn follow_until(self, mut rng: StdRng, ended: CancellationToken) {
        let services = self.services;
        let mut retry = Retry::new(Backoff::default());
        let mut names = services.watch_names();
        while !ended.is_cancelled() {
            if services.names().is_empty() {
                tokio::select! {
                    () = ended.cancelled() => return,
                    // The sender is the node's own.
                    _ = names.changed() => continue,
                }
            }
            let began = Instant::now();
            let status = tokio::select! {
                () = ended.cancelled() => return,
                followed = self.follow() => match followed {
                    Ok(()) => continue,
                    Err(status) => status,
                },
            };
            if cause(&status).needs_registration() {
                self.unknown.notify_one();
            }
            if began.elapsed() > Backoff::DEFAULT.1 {
                // The stream worked for a while.
                retry.reset();
            }
            let wait = retry.after("look services up", &status, &mut rng);
            self.gateways.pause(wait, &ended).await;
        }
    }

    /// Applies one stream until it breaks, or until there are no names.
    async fn follow(self) -> Result<(), Status> {
        let (address, mut client) = self.gateways.current()?;
        let failed = |status: Status| {
            self.gateways.refused(&address, &status);
            naming(&address, &status)
        };
        let services = self.services;
        let identity = self.identity;
        let (sender, mut receiver) = mpsc::channel(REQUESTS);
        let mut names = services.watch_names();
        names.mark_unchanged();
        let first = WatchServicesRequest {
            node_id: identity.node_id.to_string(),
            secret: identity.secret.clone(),
            services: wire(services),
        };
        // The queue is empty.
        let _ = sender.try_send(first);
        let requests = poll_fn(move |context| receiver.poll_recv(context));
        let begun = client.watch_services(request(Box::pin(requests), BEGIN_TIMEOUT));
        let mut stream = begun.await.map_err(failed)?.into_inner();
        self.gateways.answered();
        let mut expiry = tokio::time::interval(EXPIRY_INTERVAL);
        let mut silent_at = Instant::now() + SILENCE;
        loop {
            tokio::select! {
                message = next(&mut stream, silent_at) => {
                    silent_at = Instant::now() + SILENCE;
                    services.apply(message.map_err(failed)?.changed.into_iter().filter_map(read));
                }
                _ = names.changed() => {
                    let request = WatchServicesRequest {
                        services: wire(services),
                        ..WatchServicesRequest::default()
                    };
                    // A gateway that reads no requests is as good as silent.
                    match timeout_at(silent_at, sender.send(request)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => return Err(failed(ended())),
                        Err(_) => return Err(failed(silent())),
                    }
                }
                _ = expiry.tick() => {
                    if services.names().is_empty() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

async fn next(
    stream: &mut Streaming<WatchServicesResponse>,
    silent_at: Instant,
) -> Result<WatchServicesResponse, Status> {
    match timeout_at(silent_at, stream.message()).await {
        Ok(Ok(Some(message))) => Ok(message),
        Ok(Ok(None)) => Err(ended()),
        Ok(Err(status)) => Err(status),
        Err(_) => Err(silent()),
    }
}

fn ended() -> Status {
    Status::unavailable("the gateway has ended the stream")
}

fn silent() -> Status {
    Status::deadline_exceeded("the stream of services is silent")
}

fn wire(services: &Services) -> Vec<WatchedService> {
    let names = services.names().into_iter();
    let wire = |ServiceName { namespace, name }| WatchedService { namespace, name };
    names.map(wire).collect()
}

fn read(changed: proto::internal::v1::ServiceInstances) -> Option<(ServiceName, Answer)> {
    let WatchedService { namespace, name } = changed.service?;
    let answer = if changed.refusal.is_empty() {
        Answer::Instances(changed.instances.into_iter().map(instance).collect())
    } else {
        Answer::Refused(changed.refusal)
    };
    Some((ServiceName { namespace, name }, answer))
}

fn instance(found: ServiceInstance) -> Instance {
    let health = ServiceHealth::ALL.into_iter();
    let health = health
        .into_iter()
        .find(|health| health.as_str() == found.health);
    Instance {
        id: found.id,
        address: found.address,
        port: u16::try_from(found.port).unwrap_or_default(),
        tags: found.tags,
        node_id: found.node_id,
        node_name: found.node_name,
        datacenter: found.datacenter,
        // One that this version does not know is none to send clients to.
        health: health.unwrap_or(ServiceHealth::Failing),
        namespace: found.namespace,
        name: found.name,
        job_id: found.job_id,
        alloc_id: found.alloc_id,
    }
}
