//! Maintenance of etcd: compaction, defragmentation, and the alarm NOSPACE.
//!
//! Pure and level-triggered: [`MaintenancePlanner::next`] reads the status of the members and returns one action;
//! the caller performs it, reads the status again, and asks for the next. So a member is
//! defragmented only after the previous one answers again, and a new leader continues where the last
//! one stopped. Every action may be repeated, or be performed by two processes: the result is the
//! same, so none is fenced.
//!
//! In reading order: [`revisions`] knows which revision is how old, [`compaction`] chooses the
//! revision to compact, [`defragmentation`] the member to defragment, [`hours`] are the quiet
//! hours, [`etcd_status`] is the status of the members, and [`deputy`] decides which replica acts.

pub mod compaction;
pub mod defragmentation;
pub mod deputy;
pub mod etcd_status;
pub mod hours;
pub mod revisions;

#[cfg(test)]
mod tests;

use std::time::Duration;

use model::Timestamp;
use model::etcd::{EtcdMember, percent};

use compaction::{Compaction, History, Pressure};
use defragmentation::Defragmentation;
pub use deputy::{Deputy, MaintenanceRole};
pub use etcd_status::EtcdStatus;
pub use hours::QuietHours;
pub use revisions::Revisions;

/// Data in use, as a percentage of the quota, at which the short history is kept: early enough that
/// gateways, which refuse new work at 85 % by default, seldom have to.
const SCARCE_PERCENT: u64 = 70;
/// The same for the shortest history. Gateways that refuse new work accept it again below this: they would
/// go on refusing it for the sake of a longer history.
const FULL_PERCENT: u64 = 80;
/// The size at which the alarm is not disarmed: the next writes would raise it again.
const NO_ROOM_PERCENT: u64 = 95;
/// The pause after the alarm was disarmed; it doubles while the alarm comes back.
const DISARM_PAUSE: Duration = Duration::from_secs(30);
const DISARM_PAUSE_MAX: Duration = Duration::from_secs(10 * 60);
/// The pause after pages were counted, before they are counted again; it doubles. etcd frees the pages of a
/// compaction after it has answered, and an early count misses them.
const RECOUNT_PAUSE: Duration = Duration::from_secs(2);

/// The settings of [`MaintenancePlanner`].
#[derive(Clone, Debug)]
pub struct Settings {
    pub history: History,
    /// The quota of members that do not report it.
    pub quota_bytes: u64,
    /// The hours in which members are defragmented although they are far from their quota; `None`:
    /// never.
    pub quiet_hours: Option<QuietHours>,
}

/// Something to do to etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Drop the history before this revision.
    Compact(u64),
    /// Rewrite the database of the member with this endpoint; it does not answer meanwhile.
    Defragment(String),
    /// Allow writes again.
    Disarm,
}

/// Decides on etcd's next maintenance.
#[derive(Clone, Debug)]
pub struct MaintenancePlanner {
    settings: Settings,
    compaction: Compaction,
    defragmentation: Defragmentation,
    disarmed: Option<Timestamp>,
    disarm_pause: Duration,
    /// History was dropped: each member counts the pages that this frees at its own time, so no sign of one
    /// member ends the counting.
    has_compacted: bool,
    /// When the pages were counted last since the last compaction, and the pause after it.
    recounted: Option<(Timestamp, Duration)>,
}

impl MaintenancePlanner {
    pub fn new(settings: Settings) -> Self {
        Self {
            compaction: Compaction::new(settings.history),
            defragmentation: Defragmentation::new(settings.quota_bytes, settings.quiet_hours),
            settings,
            disarmed: None,
            disarm_pause: DISARM_PAUSE,
            has_compacted: false,
            recounted: None,
        }
    }

    /// Returns the next action; `None`: nothing to do at the moment. An action counts as tried, and
    /// is not returned again before its pause is over.
    pub fn next(&mut self, seen: EtcdStatus<'_>, revisions: &Revisions) -> Option<Action> {
        let pressure = self.pressure(&seen);
        let compaction = self.compaction.next(seen.now, revisions, pressure);
        if let Some(revision) = compaction {
            return Some(Action::Compact(revision));
        }
        if let Some(endpoint) = self.defragmentation.next(&seen) {
            return Some(Action::Defragment(endpoint));
        }
        let recounts = self.may_recount(&seen);
        (self.may_disarm(&seen) || recounts).then_some(Action::Disarm)
    }

    /// Notes that the history before `revision` is dropped, by whichever process.
    pub fn compacted(&mut self, revision: u64) {
        self.compaction.compacted(revision);
        (self.has_compacted, self.recounted) = (true, None);
    }

    /// Tells whether to disarm the alarm for the sake of the count: the pages that a compaction frees are
    /// counted with the next change. A full etcd takes no puts, but the end of its alarm is a change; the next
    /// put raises the alarm again while there is no room.
    fn may_recount(&mut self, seen: &EtcdStatus<'_>) -> bool {
        if !self.has_compacted || !seen.is_out_of_space() {
            return false;
        }
        let pause = match self.recounted {
            Some((at, pause)) if seen.now.since(at) < pause => return false,
            Some((_, pause)) => (pause * 2).min(DISARM_PAUSE_MAX),
            None => RECOUNT_PAUSE,
        };
        self.recounted = Some((seen.now, pause));
        true
    }

    fn pressure(&self, seen: &EtcdStatus<'_>) -> Pressure {
        if seen.is_out_of_space() {
            return Pressure::Full;
        }
        let of_member = |member: &EtcdMember| {
            let quota = member.quota_bytes(self.settings.quota_bytes);
            match quota.map(|quota| percent(member.in_use_bytes, quota)) {
                Some(FULL_PERCENT..) => Pressure::Full,
                Some(SCARCE_PERCENT..) => Pressure::Scarce,
                _ => Pressure::Calm,
            }
        };
        let worst = seen.members.iter().map(of_member).max();
        worst.unwrap_or(Pressure::Calm)
    }

    fn may_disarm(&mut self, seen: &EtcdStatus<'_>) -> bool {
        let since = self.disarmed.map(|at| seen.now.since(at));
        if !seen.is_out_of_space() {
            if since.is_some_and(|since| since > DISARM_PAUSE_MAX) {
                self.disarm_pause = DISARM_PAUSE;
                self.disarmed = None;
            }
            return false;
        }
        let has_room = |member: &EtcdMember| {
            let quota = member.quota_bytes(self.settings.quota_bytes);
            let full =
                quota.is_some_and(|quota| percent(member.db_bytes, quota) >= NO_ROOM_PERCENT);
            // The quota of etcd may be less than the configured one: what can be freed is freed first.
            !full && !defragmentation::is_worthwhile(member)
        };
        if !seen.all_answer()
            || !seen.members.iter().all(has_room)
            || since.is_some_and(|since| since < self.disarm_pause)
        {
            return false;
        }
        if since.is_some() {
            self.disarm_pause = (self.disarm_pause * 2).min(DISARM_PAUSE_MAX);
        }
        self.disarmed = Some(seen.now);
        true
    }
}
