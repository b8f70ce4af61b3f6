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
    /// Time of the lease. With 3 s a dead leader is replaced within that time. A live one renews its lease
    /// six times in it and steps down once two thirds have passed without an answer (`lease.rs`).
    ///
    /// Fractions of a second are cut off, and etcd grants at least 2 s; the leader relies on the shorter
    /// time. No other time has to be shorter for safety, because fences refuse late writes: the
    /// deadline of a request to etcd, 5 s, is longer. Two should be shorter, to be of use: the timeout of
    /// resigning (`campaign.rs`, 1 s), after which the lease would expire anyway, and the longest pause of
    /// etcd, such as a defragmentation, during which the lease is not renewed.
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
