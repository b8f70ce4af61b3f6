//! Garbage collection: removes ended allocations before the servers forget them, to make room.
//!
//! One at a time, and the disk is measured again after each, so that no more is removed than needed.
//! [`lifecycle::gc`] decides.

use std::path::Path;
use std::sync::Arc;

use lifecycle::gc::{Reason, Thresholds, Usage, choose, reason};
use nix::sys::statvfs::statvfs;
use service_kit::CancellationToken;
use task_runner::Progress;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use super::agent::Agent;
use crate::config::GcConfig;
use crate::context::Context;

/// Collects at every interval until `ended`.
pub(crate) async fn run(
    context: &Arc<Context>,
    agent: &Agent,
    config: GcConfig,
    ended: CancellationToken,
) {
    let mut throttle = WarningThrottle::default();
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            () = sleep(config.interval) => {}
        }
        tokio::select! {
            () = ended.cancelled() => return,
            () = collect(context, agent, config.thresholds(), &mut throttle) => {}
        }
        agent.forget_removed();
    }
}

async fn collect(
    context: &Context,
    agent: &Agent,
    thresholds: Thresholds,
    throttle: &mut WarningThrottle,
) {
    loop {
        let candidates = agent.candidates();
        let usage = context
            .tasks
            .alloc_dir
            .as_deref()
            .map(measure)
            .unwrap_or_default();
        let Some(reason) = reason(thresholds, usage, candidates.len()) else {
            *throttle = WarningThrottle::default();
            return;
        };
        let Some(alloc_id) = choose(&candidates) else {
            if throttle.is_due(reason) {
                log_nothing_to_collect(reason, usage, candidates.len(), thresholds);
            }
            return;
        };
        info!(%alloc_id, ?reason, disk = usage.disk, "collecting an allocation to make room");
        let Some(mut handle) = agent.collect(alloc_id).await else {
            return;
        };
        let removed = handle
            .progress
            .wait_for(|progress| *progress == Progress::Removed)
            .await;
        if removed.is_err() {
            return;
        }
        context.metrics.gc_collected.inc();
        agent.forget_removed();
    }
}

/// Checks per repeated warning: at the default interval of a minute, an hour.
const CHECKS_PER_WARNING: u32 = 60;

/// Throttle of the warning that nothing can be collected. A disk filled by other software stays full,
/// and a warning at each check would drown the rest of the log.
#[derive(Debug, Default)]
struct WarningThrottle {
    reason: Option<Reason>,
    checks: u32,
}

impl WarningThrottle {
    /// Records a check. Returns whether it warrants a warning.
    fn is_due(&mut self, reason: Reason) -> bool {
        if self.reason != Some(reason) || self.checks >= CHECKS_PER_WARNING {
            *self = Self {
                reason: Some(reason),
                checks: 1,
            };
            return true;
        }
        self.checks += 1;
        false
    }
}

/// Up to twice `gc.max_allocs` live allocations are no reason for a warning.
fn log_nothing_to_collect(reason: Reason, usage: Usage, count: usize, thresholds: Thresholds) {
    if reason == Reason::Count && count < thresholds.max_allocs * 2 {
        debug!(
            count,
            limit = thresholds.max_allocs,
            "more allocations than gc.max_allocs, all live"
        );
    } else {
        warn!(
            ?reason,
            disk = usage.disk,
            inodes = usage.inodes,
            count,
            "nothing to collect"
        );
    }
}

/// Reads the usage of the file system; on error it counts as empty.
fn measure(directory: &Path) -> Usage {
    let percent = |used: u64, total: u64| (used * 100).checked_div(total).unwrap_or(0);
    statvfs(directory).map_or(Usage::default(), |found| Usage {
        // Blocks reserved for root count as used, as in df(1).
        disk: percent(
            found.blocks() - found.blocks_free(),
            found.blocks() - found.blocks_free() + found.blocks_available(),
        ),
        inodes: percent(found.files() - found.files_free(), found.files()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_reason_is_logged_once_an_hour() {
        let mut throttle = WarningThrottle::default();
        let checks = 0..CHECKS_PER_WARNING * 2;
        let logged = checks.filter(|_| throttle.is_due(Reason::Disk)).count();
        assert_eq!(logged, 2);
        assert!(throttle.is_due(Reason::Inodes), "another reason is logged");
        throttle = WarningThrottle::default();
        assert!(
            throttle.is_due(Reason::Inodes),
            "after a reset the same reason is logged"
        );
    }

    #[test]
    fn a_file_system_has_a_usage() {
        let usage = measure(Path::new("/"));
        assert!(usage.disk <= 100 && usage.inodes <= 100);
        assert_eq!(measure(Path::new("/no/such/path")), Usage::default());
    }
}
