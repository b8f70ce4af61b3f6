//! A candidate of an election, and its options.

use std::time::Duration;

use model::LeaderInfo;

use crate::client::Client;
use crate::election::metrics::ElectionMetrics;
use crate::replica::Replica;

/// Options of one candidate.
#[derive(Clone, Debug)]
pub struct ElectionOptions {
    /// Name of the service, such as `eval-broker`.
    pub service: String,
    /// Published while this process leads.
    pub info: LeaderInfo,
    /// Lease time in whole seconds; etcd rounds up to at least 2 s. With 3 s a dead leader is replaced
    /// within that time, and a live one may miss two of three keep-alives before it steps down.
    pub ttl: Duration,
    pub metrics: ElectionMetrics,
}

impl ElectionOptions {
    pub const DEFAULT_TTL: Duration = Duration::from_secs(3);

    pub fn new(service: &str, info: LeaderInfo) -> Self {
        Self {
            service: service.to_owned(),
            info,
            ttl: Self::DEFAULT_TTL,
            metrics: ElectionMetrics::default(),
        }
    }
}

/// One candidate.
#[derive(Clone, Debug)]
pub struct Election {
    pub(super) options: ElectionOptions,
    pub(super) client: Client,
    pub(super) replica: Replica,
}

impl Election {
    pub fn new(options: ElectionOptions, client: Client, replica: Replica) -> Self {
        Self {
            options,
            client,
            replica,
        }
    }
}
