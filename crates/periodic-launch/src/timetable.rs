//! Due times of one periodic job.

use cron::{Schedule, Zone};
use model::{Periodic, Timestamp};

/// The due times of one periodic job.
#[derive(Clone, Debug)]
pub struct Timetable {
    schedules: Vec<Schedule>,
    zone: Zone,
}

impl Timetable {
    /// Reads a job's `periodic` block. Unreadable expressions are left out: registration checks
    /// them, so a later version has written these.
    pub fn new(periodic: &Periodic) -> Self {
        let crons = periodic.crons.iter();
        Self {
            schedules: crons
                .filter_map(|cron| Schedule::parse(cron).ok())
                .collect(),
            zone: Zone::named(&periodic.time_zone)
                .or_else(|_| Zone::named("UTC"))
                .expect("UTC is always known"),
        }
    }

    /// Returns the first time after `after`; `None`: there is none.
    ///
    /// Expressions without a further time are ignored. Units: whole seconds.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = seconds(after);
        let schedules = self.schedules.iter();
        let times = schedules.filter_map(|schedule| schedule.next(after, &self.zone));
        times.min().and_then(timestamp)
    }

    /// Returns the last time that is after `after` and not after `now`; `None`: none is due.
    pub fn due(&self, after: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let (after, now) = (seconds(after), seconds(now));
        let schedules = self.schedules.iter();
        let times = schedules.filter_map(|schedule| schedule.last(after, now, &self.zone));
        times.max().and_then(timestamp)
    }
}

fn seconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

fn timestamp(seconds: i64) -> Option<Timestamp> {
    u64::try_from(seconds).ok().map(Timestamp::from_secs)
}
