//! The gateways of the cluster, and which of them is asked.
//!
//! The first of the list is asked until it fails; then it goes to the end. All loops of a node share
//! the list, so one that finds a gateway dead spares the others the same wait.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proto::internal::v1::node_sessions_client::NodeSessionsClient;
use service_kit::{CancellationToken, IdSource, TracedChannel, connect_lazy};
use tokio::sync::Notify;
use tokio::time::sleep;
use tonic::{Code, Response, Status};
use tracing::{info, warn};

/// A full list of a node with thousands of allocations is larger than gRPC's default of 4 MiB.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

pub(crate) type Client = NodeSessionsClient<TracedChannel>;

/// Where the gateways are.
pub(crate) struct Gateways {
    list: Mutex<List>,
    /// Rung when a call succeeds after one that failed: whoever waits to try again need not.
    recovered: Notify,
    ids: IdSource,
}

struct List {
    /// Never empty.
    addresses: Vec<String>,
    /// Those of the configuration, in case all others are gone.
    configured: Vec<String>,
    channels: HashMap<String, TracedChannel>,
    /// A channel that is used whatever the address: all simulated nodes of a process share one.
    shared: Option<TracedChannel>,
    is_failing: bool,
}

impl Gateways {
    pub(crate) fn new(configured: Vec<String>, ids: IdSource) -> Self {
        Self::with(configured, None, ids)
    }

    /// Asks everything over one channel.
    pub(crate) fn shared(channel: TracedChannel, ids: IdSource) -> Self {
        Self::with(vec!["the shared channel".to_owned()], Some(channel), ids)
    }

    fn with(configured: Vec<String>, shared: Option<TracedChannel>, ids: IdSource) -> Self {
        let list = List {
            addresses: configured.clone(),
            configured,
            channels: HashMap::new(),
            shared,
            is_failing: false,
        };
        Self {
            list: Mutex::new(list),
            recovered: Notify::new(),
            ids,
        }
    }

    /// Makes one call to the gateway that is asked at the moment, and takes note of how it went.
    pub(crate) async fn call<T>(
        &self,
        call: impl AsyncFnOnce(Client) -> Result<Response<T>, Status>,
    ) -> Result<T, Status> {
        let (address, client) = self.current()?;
        match call(client).await {
            Ok(response) => {
                self.answered();
                Ok(response.into_inner())
            }
            Err(status) => {
                self.refused(&address, &status);
                Err(status)
            }
        }
    }

    /// Waits before another try: at most `limit`, not at all once another call has succeeded.
    pub(crate) async fn pause(&self, limit: Duration, ended: &CancellationToken) {
        tokio::select! {
            () = sleep(limit) => {}
            () = self.recovered.notified() => {}
            () = ended.cancelled() => {}
        }
    }

    /// Replaces the list by what a gateway says. An equal set keeps its order, which has its dead
    /// at the end; a new one is shuffled, so that nodes do not all come to the same gateway.
    pub(crate) fn replace(&self, addresses: &[String]) {
        let mut list = self.lock();
        if addresses.is_empty() || list.shared.is_some() {
            return;
        }
        let (mut old, mut new) = (list.addresses.clone(), addresses.to_vec());
        old.sort();
        new.sort();
        new.dedup();
        if old == new {
            return;
        }
        let current = list.addresses[0].clone();
        shuffle(&mut new, &self.ids);
        // The one that answers goes on being asked.
        if let Some(position) = new.iter().position(|address| *address == current) {
            new.swap(0, position);
        }
        info!(gateways = ?new, "the gateways of the cluster");
        list.channels.retain(|address, _| new.contains(address));
        list.addresses = new;
    }

    pub(crate) fn answered(&self) {
        if std::mem::take(&mut self.lock().is_failing) {
            self.recovered.notify_waiters();
        }
    }

    /// Takes note of a refusal; one that says something about the gateway moves it to the end.
    pub(crate) fn refused(&self, address: &str, status: &Status) {
        let is_about_gateway = matches!(
            status.code(),
            Code::Unavailable
                | Code::DeadlineExceeded
                | Code::Unknown
                | Code::Cancelled
                | Code::Internal
                | Code::Unimplemented
                | Code::ResourceExhausted
        );
        if !is_about_gateway {
            return;
        }
        let mut list = self.lock();
        list.is_failing = true;
        if list.addresses[0] != address {
            return;
        }
        list.addresses.rotate_left(1);
        let unknown: Vec<String> = list
            .configured
            .iter()
            .filter(|address| !list.addresses.contains(address))
            .cloned()
            .collect();
        // Whoever told of the others may have been wrong about all of them.
        list.addresses.extend(unknown);
        if list.addresses.len() > 1 {
            let next = &list.addresses[0];
            warn!(
                gateway = address,
                next,
                message = status.message(),
                "gateway failed, asking another"
            );
        }
    }

    /// Returns the gateway to ask and its address.
    pub(crate) fn current(&self) -> Result<(String, Client), Status> {
        let mut list = self.lock();
        let address = list.addresses[0].clone();
        let known = list
            .shared
            .clone()
            .or_else(|| list.channels.get(&address).cloned());
        let channel = match known {
            Some(channel) => channel,
            None => {
                let channel = connect_lazy(&address).map_err(|error| {
                    list.addresses.rotate_left(1);
                    Status::unavailable(error.to_string())
                })?;
                list.channels.insert(address.clone(), channel.clone());
                channel
            }
        };
        drop(list);
        let client = Client::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Ok((address, client))
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        // Each critical section leaves the list whole.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shuffle(addresses: &mut [String], ids: &IdSource) {
    for position in (1..addresses.len()).rev() {
        let bound = u64::try_from(position + 1).unwrap_or(1);
        let other = usize::try_from(ids.next_u64() % bound).unwrap_or(0);
        addresses.swap(position, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateways(addresses: &[&str]) -> Gateways {
        let addresses = addresses
            .iter()
            .map(|address| (*address).to_owned())
            .collect();
        Gateways::new(addresses, IdSource::seeded(1))
    }

    fn asked(gateways: &Gateways) -> String {
        gateways.current().unwrap().0
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[tokio::test]
    async fn scenario_012_a_gateway_that_fails_is_asked_last() {
        let gateways = gateways(&["http://a:1", "http://b:1", "http://c:1"]);
        gateways.refused("http://a:1", &Status::unavailable("gone"));
        assert_eq!(asked(&gateways), "http://b:1");
        // Another loop had asked the same one: that is no news about the next.
        gateways.refused("http://a:1", &Status::deadline_exceeded("slow"));
        assert_eq!(asked(&gateways), "http://b:1");
        gateways.refused("http://b:1", &Status::not_found("node"));
        assert_eq!(asked(&gateways), "http://b:1", "it answered");
        gateways.refused("http://b:1", &Status::unavailable("gone"));
        gateways.refused("http://c:1", &Status::unavailable("gone"));
        assert_eq!(asked(&gateways), "http://a:1");
    }

    #[tokio::test]
    async fn the_servers_list_counts_and_the_configured_ones_are_not_forgotten() {
        let gateways = gateways(&["http://a:1"]);
        gateways.replace(&strings(&["http://x:1", "http://y:1", "http://a:1"]));
        assert_eq!(asked(&gateways), "http://a:1", "the one that answers");
        gateways.replace(&strings(&["http://x:1", "http://y:1"]));
        assert_ne!(asked(&gateways), "http://a:1");
        gateways.replace(&[]);
        for _ in 0..2 {
            gateways.refused(&asked(&gateways), &Status::unavailable("gone"));
        }
        let mut all = Vec::new();
        for _ in 0..3 {
            all.push(asked(&gateways));
            gateways.refused(&asked(&gateways), &Status::unavailable("gone"));
        }
        assert!(all.contains(&"http://a:1".to_owned()), "{all:?}");
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_passed_over() {
        let gateways = gateways(&["not an address", "http://b:1"]);
        assert!(gateways.current().is_err());
        assert_eq!(asked(&gateways), "http://b:1");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_woken_when_another_call_succeeds() {
        let gateways = gateways(&["http://a:1"]);
        let ended = CancellationToken::new();
        let began = tokio::time::Instant::now();
        gateways.refused("http://a:1", &Status::unavailable("gone"));
        tokio::join!(gateways.pause(Duration::from_secs(60), &ended), async {
            sleep(Duration::from_secs(2)).await;
            gateways.answered();
        });
        assert_eq!(began.elapsed().as_secs(), 2);
        gateways.answered();
        gateways.pause(Duration::from_secs(3), &ended).await;
        assert_eq!(
            began.elapsed().as_secs(),
            5,
            "only a success after a failure"
        );
    }
}
