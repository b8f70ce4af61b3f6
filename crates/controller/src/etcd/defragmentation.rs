//! The member to defragment: followers first, one at a time, only when it frees enough.

use std::collections::HashMap;
use std::time::Duration;

use model::Timestamp;
use model::etcd::{EtcdMember, percent};

use super::etcd_status::EtcdStatus;
use super::hours::QuietHours;

/// The size, as a percentage of the quota, at which a member is defragmented at any hour: at the quota
/// etcd refuses writes even if the database is mostly free pages.
const FULL_PERCENT: u64 = 90;
/// The least share of free pages for which a nearly full member is defragmented.
const WORTHWHILE_PERCENT: u64 = 5;
/// The same in quiet hours.
const QUIET_PERCENT: u64 = 25;
/// The least bytes that a defragmentation in quiet hours frees.
const QUIET_MIN_BYTES: u64 = 16 << 20;
/// The pause before the same member is defragmented again; it doubles each time.
const PAUSE: Duration = Duration::from_secs(60);
const PAUSE_MAX: Duration = Duration::from_secs(60 * 60);
/// Without a defragmentation for this long, the pause starts over.
const CALM: Duration = Duration::from_secs(4 * 60 * 60);

/// Tells whether free pages are a relevant part of the member's database.
pub(super) fn is_worthwhile(member: &EtcdMember) -> bool {
    percent(member.free_bytes(), member.db_bytes) >= WORTHWHILE_PERCENT
}

/// Chooses members, and remembers when each was tried last.
#[derive(Clone, Debug)]
pub struct Defragmentation {
    quota_bytes: u64,
    quiet_hours: Option<QuietHours>,
    /// Endpoint → when, and the pause after it.
    tried: HashMap<String, (Timestamp, Duration)>,
}

impl Defragmentation {
    pub fn new(quota_bytes: u64, quiet_hours: Option<QuietHours>) -> Self {
        Self {
            quota_bytes,
            quiet_hours,
            tried: HashMap::new(),
        }
    }

    /// Returns the endpoint of the member to defragment next. While a member is away, it is none,
    /// because another one would cost the quorum; unless the alarm stands, when writes are refused anyway.
    pub fn next(&mut self, seen: &EtcdStatus<'_>) -> Option<String> {
        if !seen.all_answer() && !seen.is_out_of_space() {
            return None;
        }
        let is_quiet = self
            .quiet_hours
            .is_some_and(|hours| hours.contains(seen.wall));
        let wanted = seen.members.iter().filter(|member| {
            self.is_wanted(member, seen.is_out_of_space(), is_quiet)
                && self.cooldown_elapsed(member, seen.now)
        });
        let endpoint = wanted.min_by_key(|member| (member.is_leader, &member.endpoint))?;
        let endpoint = endpoint.endpoint.clone();
        let before = self.tried.get(&endpoint);
        let recent = before.filter(|(at, _)| seen.now.since(*at) < CALM);
        let pause = recent.map_or(PAUSE, |(_, pause)| (*pause * 2).min(PAUSE_MAX));
        self.tried.insert(endpoint.clone(), (seen.now, pause));
        Some(endpoint)
    }

    fn is_wanted(&self, member: &EtcdMember, is_out_of_space: bool, is_quiet: bool) -> bool {
        let quota = member.quota_bytes(self.quota_bytes);
        let is_full = quota.is_some_and(|quota| percent(member.db_bytes, quota) >= FULL_PERCENT);
        if (is_full || is_out_of_space) && is_worthwhile(member) {
            return true;
        }
        is_quiet
            && quota.is_some()
            && member.free_bytes() >= QUIET_MIN_BYTES
            && percent(member.free_bytes(), member.db_bytes) >= QUIET_PERCENT
    }

    fn cooldown_elapsed(&self, member: &EtcdMember, now: Timestamp) -> bool {
        let tried = self.tried.get(&member.endpoint);
        tried.is_none_or(|(at, pause)| now.since(*at) >= *pause)
    }
}
