//! etcd's services over tonic: pass requests to the store and return its responses. No decisions.

mod addresses;
mod cluster;
mod kv;
mod lease;
mod maintenance;
mod watch;

use etcd_client::proto::{
    PbClusterServer, PbKvServer, PbLeaseServer, PbMaintenanceServer, PbWatchServer,
};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Server, server::Router};

use self::{addresses::Addresses, lease::LeaseIds};
use crate::{config::Config, run::Handle};

/// Bytes of a message beyond the limit of a request; etcd's number.
const OVERHEAD_BYTES: usize = 512 * 1024;

/// State shared by all listeners of a store.
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
