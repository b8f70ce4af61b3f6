//! etcd's services over tonic: hands requests to the store and its answers back. Decides nothing.

mod cluster;
mod kv;
mod lease;
mod maintenance;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};

use etcd_client::proto::{
    PbClusterServer, PbKvServer, PbLeaseServer, PbMaintenanceServer, PbWatchServer,
};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Server, server::Router};

use self::lease::LeaseIds;
use crate::{config::Config, run::Handle};

/// What a message may have beyond the limit of a request; etcd's number.
const OVERHEAD_BYTES: usize = 512 * 1024;

/// What all listeners of a store share.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    handle: Handle,
    max_request_bytes: usize,
    lease_ids: LeaseIds,
    pub(crate) addresses: Addresses,
}

impl Services {
    pub(crate) fn new(handle: Handle, config: &Config) -> Self {
        Self {
            handle,
            max_request_bytes: config.max_request_bytes,
            lease_ids: LeaseIds::new(config.lease_id_seed),
            addresses: Addresses::default(),
        }
    }
}

/// The services for one listener; their streams end with `ended`.
pub(crate) fn router(mut server: Server, services: &Services, ended: CancellationToken) -> Router {
    let handle = &services.handle;
    let max_bytes = services.max_request_bytes.saturating_add(OVERHEAD_BYTES);
    let kv = PbKvServer::new(kv::KvService {
        handle: handle.clone(),
    });
    let watch = PbWatchServer::new(watch::WatchService {
        handle: handle.clone(),
        max_bytes,
        ended: ended.clone(),
    });
    let lease = PbLeaseServer::new(lease::LeaseService {
        handle: handle.clone(),
        ids: services.lease_ids.clone(),
        ended,
    });
    let cluster = PbClusterServer::new(cluster::ClusterService {
        handle: handle.clone(),
        addresses: services.addresses.clone(),
    });
    let maintenance = PbMaintenanceServer::new(maintenance::MaintenanceService {
        handle: handle.clone(),
    });
    // Answers are as large as what is asked for; requests are bounded.
    server
        .add_service(
            kv.max_decoding_message_size(max_bytes)
                .max_encoding_message_size(usize::MAX),
        )
        .add_service(
            watch
                .max_decoding_message_size(max_bytes)
                .max_encoding_message_size(usize::MAX),
        )
        .add_service(lease.max_encoding_message_size(usize::MAX))
        .add_service(cluster)
        .add_service(maintenance)
}

/// The client URLs that the store is served at, shared by its listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    urls: Arc<Mutex<Vec<String>>>,
}

impl Addresses {
    /// Adds `url` for as long as the returned value lives.
    pub(crate) fn announce(&self, url: String) -> Announced {
        self.with(|urls| urls.push(url.clone()));
        Announced {
            addresses: self.clone(),
            url,
        }
    }

    fn list(&self) -> Vec<String> {
        self.with(|urls| urls.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Vec<String>) -> T) -> T {
        act(&mut self.urls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An address that is being served.
#[derive(Debug)]
pub(crate) struct Announced {
    addresses: Addresses,
    url: String,
}

impl Drop for Announced {
    fn drop(&mut self) {
        let url = &self.url;
        self.addresses
            .with(|urls| urls.retain(|other| other != url));
    }
}
