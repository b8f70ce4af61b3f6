//! Makes room: removes allocations that have ended before the servers forget them.
//!
//! One at a time, and the disk is measured again after each, so no more goes than has to.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use service_kit::CancellationToken;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::agent::{Agent, Candidate};
use crate::config::GcConfig;
use crate::context::Context;
use crate::runner::Progress;

/// How often it is said that there is nothing to collect: a disk that is full of other things stays
/// so until somebody comes, and a line a minute hides the others.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// How full the file system is, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    disk: u64,
    inodes: u64,
}

/// Why something has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Disk,
    Inodes,
    Count,
}

/// Collects at every interval until `ended`.
pub(crate) async fn run(
    context: &Arc<Context>,
    agent: &Agent,
    config: GcConfig,
    ended: CancellationToken,
) {
    let mut complaint = Complaint::default();
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            () = sleep(config.interval) => {}
        }
        tokio::select! {
            () = ended.cancelled() => return,
            () = collect(context, agent, config, &mut complaint) => {}
        }
        agent.forget_removed();
    }
}

/// When it was last said that there is nothing to make room with.
#[derive(Debug, Default)]
struct Complaint {
    last: Option<(Reason, Instant)>,
}

impl Complaint {
    /// Tells whether it is to be said, and takes note that it is.
    fn is_due(&mut self, reason: Reason, now: Instant) -> bool {
        let is_due = self.last.is_none_or(|(said, when)| {
            said != reason || now.saturating_duration_since(when) >= COMPLAINT_INTERVAL
        });
        if is_due {
            self.last = Some((reason, now));
        }
        is_due
    }

    /// There is room again.
    fn settle(&mut self) {
        self.last = None;
    }
}

async fn collect(context: &Context, agent: &Agent, config: GcConfig, complaint: &mut Complaint) {
    loop {
        let candidates = agent.candidates();
        let usage = context
            .alloc_dir
            .as_deref()
            .map(measure)
            .unwrap_or_default();
        let Some(reason) = over(config, usage, candidates.len()) else {
            complaint.settle();
            return;
        };
        let Some(chosen) = candidates.iter().find(|candidate| candidate.has_ended) else {
            if complaint.is_due(reason, Instant::now()) {
                say_nothing_to_collect(reason, usage, candidates.len(), config);
            }
            return;
        };
        let alloc_id = chosen.alloc_id;
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

fn over(config: GcConfig, usage: Usage, count: usize) -> Option<Reason> {
    if usage.disk > u64::from(config.disk_usage_threshold) {
        Some(Reason::Disk)
    } else if usage.inodes > u64::from(config.inode_usage_threshold) {
        Some(Reason::Inodes)
    } else if count > config.max_allocs {
        Some(Reason::Count)
    } else {
        None
    }
}

/// A node that is meant to run more than the limit says is no reason to worry anybody.
fn say_nothing_to_collect(reason: Reason, usage: Usage, count: usize, config: GcConfig) {
    if reason == Reason::Count && count < config.max_allocs * 2 {
        debug!(
            count,
            limit = config.max_allocs,
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

/// Looks at the file system; one that does not tell is taken for empty.
fn measure(directory: &Path) -> Usage {
    let percent = |used: u64, total: u64| (used * 100).checked_div(total).unwrap_or(0);
    statvfs(directory).map_or(Usage::default(), |found| Usage {
        // Blocks that only root may use count as used, as in df(1).
        disk: percent(
            found.blocks() - found.blocks_free(),
            found.blocks() - found.blocks_free() + found.blocks_available(),
        ),
        inodes: percent(found.files() - found.files_free(), found.files()),
    })
}

impl Candidate {
    #[cfg(test)]
    fn new(number: u128, has_ended: bool) -> Self {
        Self {
            alloc_id: model::AllocId::from_random(number),
            has_ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_for_disk_then_inodes_then_count() {
        let config = GcConfig::default();
        let usage = |disk, inodes| Usage { disk, inodes };
        assert_eq!(
            over(config, usage(80, 70), 50),
            None,
            "limits are reached, not passed"
        );
        assert_eq!(over(config, usage(81, 71), 51), Some(Reason::Disk));
        assert_eq!(over(config, usage(80, 71), 51), Some(Reason::Inodes));
        assert_eq!(over(config, usage(80, 70), 51), Some(Reason::Count));
    }

    #[test]
    fn that_there_is_nothing_to_collect_is_said_once_an_hour_and_when_it_is_news() {
        let (mut complaint, began) = (Complaint::default(), Instant::now());
        let minute = |number: u64| began + Duration::from_secs(60 * number);
        let said = (0..180).filter(|number| complaint.is_due(Reason::Disk, minute(*number)));
        assert_eq!(said.count(), 3);
        assert!(
            complaint.is_due(Reason::Inodes, minute(180)),
            "another reason"
        );
        assert!(!complaint.is_due(Reason::Inodes, minute(181)));
        complaint.settle();
        assert!(
            complaint.is_due(Reason::Inodes, minute(182)),
            "there was room meanwhile"
        );
    }

    #[test]
    fn a_file_system_is_partly_full() {
        let usage = measure(Path::new("/"));
        assert!(usage.disk <= 100 && usage.inodes <= 100);
        assert_eq!(measure(Path::new("/no/such/path")), Usage::default());
    }

    #[test]
    fn only_what_has_ended_is_chosen() {
        let candidates = [Candidate::new(1, false), Candidate::new(2, true)];
        let chosen = candidates
            .iter()
            .find(|candidate| candidate.has_ended)
            .unwrap();
        assert_eq!(chosen.alloc_id, Candidate::new(2, true).alloc_id);
    }
}
