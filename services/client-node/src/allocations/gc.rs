//! Garbage collection: removes ended allocations before the servers forget them, to make room.
//!
//! One at a time, and the disk is measured again after each, so that no more is removed than needed.
//! [`lifecycle::gc`] decides.

use std::path::Path;
use std::sync::Arc;

use lifecycle::gc::{Reason, Thresholds, Usage, WarningThrottle, choose, reason};
use service_kit::CancellationToken;
use task_runner::Progress;
use task_runner::file_system::FileSystem;
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

fn log_nothing_to_collect(reason: Reason, usage: Usage, count: usize, thresholds: Thresholds) {
    if reason.is_expected(count, thresholds) {
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
    FileSystem::read(directory).map_or(Usage::default(), |found| Usage {
        disk: found.disk_share().whole_percent(),
        inodes: found.inode_share().whole_percent(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_a_usage() {
        let usage = measure(Path::new("/"));
        assert!(usage.disk <= 100 && usage.inodes <= 100);
        assert_eq!(measure(Path::new("/no/such/path")), Usage::default());
    }
}
