//! Makes one process of a service its leader, as long as it lives.
//!
//! The election key `election/<service>` is bound to a lease; whoever creates it leads until it is
//! gone. Its create revision is the leader's [`Fence`]: every write of a leader compares it, so a
//! deposed leader cannot write, whatever it believes. What it believes is kept conservative all
//! the same: a [`Leadership`] counts as lost a third of the lease's time before etcd could give
//! the lease to another, because reads and promises to callers carry no compare.
//!
//! In reading order: [`fence`], [`leadership`] is what a leader holds, `lease` keeps it, `campaign`
//! wins and resigns, [`run`] is the loop that services use.

mod campaign;
pub mod fence;
pub mod leadership;
mod lease;
mod metrics;
pub mod run;

use std::time::Duration;

use model::LeaderInfo;

pub use fence::Fence;
pub use leadership::Leadership;
pub use metrics::ElectionMetrics;
pub use run::run_elected;

use crate::client::Client;
use crate::replica::Replica;

/// What is campaigned for, and as whom.
#[derive(Clone, Debug)]
pub struct ElectionOptions {
    /// As in `eval-broker`.
    pub service: String,
    /// What others are told while we lead.
    pub info: LeaderInfo,
    /// How long etcd keeps a leader that has fallen silent; whole seconds, etcd rounds up to 2 s or
    /// more. 3 s: a dead leader is replaced within that, and a live one may miss two of three
    /// keep-alives before it steps down.
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
    options: ElectionOptions,
    client: Client,
    replica: Replica,
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
