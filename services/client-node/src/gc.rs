//! Makes room: removes allocations that have ended before the servers forget them.
//!
//! One at a time, and the disk is measured again after each, so no more goes than has to.

use std::path::Path;
use std::sync::Arc;

use nix::sys::statvfs::statvfs;
use service_kit::CancellationToken;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::agent::{Agent, Candidate};
use crate::config::GcConfig;
use crate::context::Context;
use crate::runner::Progress;

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

async fn collect(context: &Context, agent: &Agent, config: GcConfig, complaint: &mut Complaint) {
    loop {
        let candidates = agent.candidates();
        let usage = context
            .alloc_dir
            .as_deref()
            .map(measure)
            .unwrap_or_default();
        let Some(reason) = over(config, usage, candidates.len()) else {
            *complaint = Complaint::default();
            return;
        };
        let Some(chosen) = candidates.iter().find(|candidate| candidate.has_ended) else {
            if complaint.is_news(reason) {
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

/// After how many looks a complaint is made again: at the usual interval of a minute, an hour.
const LOOKS_PER_COMPLAINT: u32 = 60;

/// What was last said of having too much and nothing to collect. A disk that others fill stays
/// full, and saying so at each look would drown what else the log has.
#[derive(Debug, Default)]
struct Complaint {
    reason: Option<Reason>,
    looks: u32,
}

impl Complaint {
    /// Records a look; tells whether it is worth a word.
    fn is_news(&mut self, reason: Reason) -> bool {
        if self.reason != Some(reason) || self.looks >= LOOKS_PER_COMPLAINT {
            *self = Self {
                reason: Some(reason),
                looks: 1,
            };
            return true;
        }
        self.looks += 1;
        false
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
    fn what_stays_full_is_complained_of_once_an_hour() {
        let mut complaint = Complaint::default();
        let looks = 0..LOOKS_PER_COMPLAINT * 2;
        let said = looks.filter(|_| complaint.is_news(Reason::Disk)).count();
        assert_eq!(said, 2);
        assert!(complaint.is_news(Reason::Inodes), "another reason is news");
        complaint = Complaint::default();
        assert!(complaint.is_news(Reason::Inodes), "so is the same again");
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
