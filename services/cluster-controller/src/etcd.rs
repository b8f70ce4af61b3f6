//! The loop that maintains etcd, around [`controller::etcd::MaintenancePlanner`]: reads the status of the members,
//! performs one action at a time, and publishes sizes as metrics.
//!
//! The leader performs the actions, or a deputy ([`controller::etcd::deputy`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use controller::etcd::{
    Action, Deputy, EtcdStatus, MaintenancePlanner, MaintenanceRole, Revisions, Settings,
};
use model::Timestamp;
use model::etcd::{Bytes, EtcdMember};
use rand::RngExt as _;
use service_kit::run::chain;
use service_kit::{Clock, IdSource, SteadyClock};
use store::{Client, Compacted, Replica};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::SERVICE;
use crate::metrics::Metrics;

/// The interval of looks at the members; shorter when the shortest history is.
const INTERVAL: Duration = Duration::from_secs(10);
const INTERVAL_MIN: Duration = Duration::from_millis(200);
/// etcd rewrites some 100 MB a second, and its largest recommended size is 8 GiB.
const DEFRAGMENT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Tells whether this process leads. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leads(Arc<AtomicUsize>);

/// One term; it ends when this is dropped.
pub(crate) struct Leading(Leads);

impl Leads {
    pub(crate) fn begin(&self) -> Leading {
        self.0.fetch_add(1, Ordering::Relaxed);
        Leading(self.clone())
    }

    pub(crate) fn now(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The loop and its dependencies.
pub(crate) struct Maintenance {
    pub(crate) client: Client,
    pub(crate) replica: Replica,
    pub(crate) metrics: Metrics,
    pub(crate) leads: Leads,
    pub(crate) ids: IdSource,
}

impl Maintenance {
    /// Maintains etcd until drained.
    pub(crate) async fn run(self, settings: Settings, drain: CancellationToken) {
        let clock = SteadyClock::start(Clock::real());
        let history = settings.history;
        let quota_bytes = settings.quota_bytes;
        let interval = (history.shortest() / 4).clamp(INTERVAL_MIN, INTERVAL);
        let mut deputy = Deputy::new(interval, self.ids.rng().random_range(0.0..1.0));
        let mut revisions = Revisions::new(history.shortest(), history.kept);
        let mut planner = MaintenancePlanner::new(settings);
        loop {
            tokio::select! {
                () = drain.cancelled() => return,
                () = tokio::time::sleep(interval) => {}
            }
            let now = Timestamp(clock.now());
            revisions.record(now, self.replica.applied());
            let has_leader = self.replica.leader(SERVICE).is_some();
            let role = deputy.role(now, self.leads.now(), has_leader);
            if role != MaintenanceRole::Leader {
                self.metrics.etcd.clear_members();
            }
            if role == MaintenanceRole::Standby {
                continue;
            }
            let members = self.members().await;
            if role == MaintenanceRole::Leader {
                self.metrics.etcd.observe(&members, quota_bytes);
            }
            if !role.acts(&members) {
                continue;
            }
            let seen = EtcdStatus {
                now,
                wall: Timestamp(Clock::real().now()),
                members: &members,
                expected: self.client.endpoints().len(),
            };
            let Some(action) = planner.next(seen, &revisions) else {
                continue;
            };
            tokio::select! {
                () = drain.cancelled() => return,
                compacted = self.perform(action, &members) => {
                    if let Some(revision) = compacted {
                        planner.compacted(revision);
                    }
                }
            }
        }
    }

    /// Returns the members that answer.
    async fn members(&self) -> Vec<EtcdMember> {
        let mut members = Vec::new();
        for (endpoint, status) in self.client.members().await {
            match status {
                Ok(member) => members.push(member),
                Err(error) => {
                    debug!(
                        endpoint,
                        error = chain(&error),
                        "a member of etcd has no status"
                    )
                }
            }
        }
        members
    }

    /// Performs an action, and returns the revision of a successful compaction. A failure is
    /// logged, and the action is chosen again after its pause.
    async fn perform(&self, action: Action, members: &[EtcdMember]) -> Option<u64> {
        let metrics = &self.metrics.etcd;
        let began = Instant::now();
        let done = match &action {
            Action::Compact(revision) => self.client.compact(*revision).await.map(|compacted| {
                if compacted == Compacted::Now {
                    metrics.compactions.inc();
                }
                metrics
                    .compacted_revision
                    .set(i64::try_from(*revision).unwrap_or(i64::MAX));
                debug!(revision, ?compacted, "etcd's history compacted");
            }),
            Action::Defragment(endpoint) => {
                let before = members.iter().find(|member| member.endpoint == *endpoint);
                let free = Bytes(before.map_or(0, EtcdMember::free_bytes));
                info!(endpoint, %free, "defragmenting a member of etcd");
                let done = self.client.defragment(endpoint, DEFRAGMENT_TIMEOUT).await;
                done.map(|()| {
                    metrics.defragmentations.inc();
                    let milliseconds = began.elapsed().as_millis();
                    info!(endpoint, milliseconds, "a member of etcd is defragmented");
                })
            }
            Action::Disarm => self.client.disarm().await.map(|members| {
                metrics.disarmed.inc();
                warn!(
                    members,
                    "disarmed etcd's alarm NOSPACE: it takes writes again"
                );
            }),
        };
        match (done, action) {
            (Ok(()), Action::Compact(revision)) => Some(revision),
            (Ok(()), _) => None,
            (Err(error), action) => {
                metrics.failures.inc();
                warn!(
                    ?action,
                    error = chain(&error),
                    "cannot maintain etcd; retrying"
                );
                None
            }
        }
    }
}
