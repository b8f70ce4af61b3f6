//! Decides when periodic jobs are launched.
//!
//! Pure: changes and the time go in, launches come out. What counts is stored: the launch record of
//! a job says up to which time it was launched, every launch compares and moves it, so two leaders,
//! or one whose write was answered late, cannot launch one time twice. What is kept here is only
//! when to look again, and a new leader makes it anew from the replica.
//!
//! What is due and was missed is launched once, for the last of the times that went by.
//! A time at which a child of a job that prohibits overlap is still at work is left out: the record
//! moves, and nothing is launched.
//!
//! In reading order: [`Timetable`] is when one job is due; [`Launcher`] watches over all of them;
//! [`launch`] makes the values that are written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cron::{Schedule, Zone};
use model::{
    EvalId, Evaluation, Indexed, Job, JobKey, Periodic, PeriodicLaunch, Timestamp, TriggeredBy,
};
use state::{Change, Key, Snapshot};

/// How long a launch may take before it is asked for again. What is slower than this is not lost:
/// the one that comes second finds the record moved.
const RETRY: Duration = Duration::from_secs(5);

/// How many launches one step asks for; the rest follow in the next one, at once. At midnight all
/// daily jobs are due, and the loop should see other events in between.
pub(crate) const PER_STEP: usize = 256;

/// When one job is due.
#[derive(Clone, Debug)]
pub struct Timetable {
    schedules: Vec<Schedule>,
    zone: Zone,
}

impl Timetable {
    /// Reads a job's block. What cannot be read is left out: it was checked when the job was
    /// registered, so a later version has written it.
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

    /// Returns the first time after `after`; `None`: there is no further one.
    ///
    /// Expressions without a further time do not hide the others. Units: whole seconds.
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

/// Returns up to when a periodic job was launched: what its record says, or else its registration.
pub fn launched_until(snapshot: &Snapshot, job: &Indexed<Job>) -> Timestamp {
    let record = snapshot.periodic_launch(&job.value.key());
    record.map_or(job.value.submit_time, |record| record.value.launched)
}

/// Returns when a job is launched next, as of `now`; `None`: it is not.
pub fn next_launch(snapshot: &Snapshot, job: &Indexed<Job>, now: Timestamp) -> Option<Timestamp> {
    let periodic = job.value.periodic.as_ref();
    let periodic = periodic.filter(|_| job.value.is_launched())?;
    Timetable::new(periodic).next(launched_until(snapshot, job).max(now))
}

/// A launch of one job for one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub job: JobKey,
    /// Whole seconds; the child is named after it.
    pub at: Timestamp,
    /// The revision of the job that this was decided on.
    pub job_index: u64,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Launch(Due),
    /// A child is still at work, and the job says that they must not overlap.
    Skip(Due),
}

#[derive(Debug)]
struct Entry {
    job_index: u64,
    timetable: Timetable,
    /// When to look again.
    look_at: Timestamp,
}

/// Watches over all periodic jobs.
#[derive(Debug, Default)]
pub struct Launcher {
    entries: BTreeMap<JobKey, Entry>,
    /// The entries by when to look at them.
    queue: BTreeSet<(Timestamp, JobKey)>,
    /// Jobs that have changed, or whose record has.
    changed: BTreeSet<JobKey>,
}

impl Launcher {
    /// Takes notice of changes; [`Self::step`] acts on them.
    pub fn note(&mut self, changes: &[Change]) {
        for change in changes {
            let (Change::Put { key, .. } | Change::Delete { key }) = change;
            if let Key::Job(job) | Key::PeriodicLaunch(job) = key
                && (self.entries.contains_key(job) || is_put_periodic(change))
            {
                self.changed.insert(job.clone());
            }
        }
    }

    /// Forgets what was thought to be known, and looks at every job again.
    pub fn resync(&mut self, snapshot: &Snapshot) {
        self.changed.extend(self.entries.keys().cloned());
        self.changed.extend(snapshot.launched_jobs().cloned());
    }

    /// Returns what is to be done now. A launch that does not come about is asked for again.
    pub fn step(&mut self, now: Timestamp, snapshot: &Snapshot) -> Vec<Effect> {
        for job in std::mem::take(&mut self.changed) {
            self.refresh(job, snapshot);
        }
        let mut effects = Vec::new();
        while effects.len() < PER_STEP
            && let Some((look_at, key)) = self.queue.first()
            && *look_at <= now
        {
            let key = key.clone();
            if let Some(effect) = self.decide(&key, now, snapshot) {
                effects.push(effect);
            }
        }
        effects
    }

    /// Returns when to step at the latest; `None`: only a change can make something due.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.queue.first().map(|(time, _)| *time)
    }

    pub fn tracked(&self) -> usize {
        self.entries.len()
    }

    /// Brings one job's entry up to date.
    fn refresh(&mut self, key: JobKey, snapshot: &Snapshot) {
        let old = self.remove(&key);
        let job = snapshot.job(&key).filter(|job| job.value.is_launched());
        let Some((job, periodic)) = job.and_then(|job| Some((job, job.value.periodic.as_ref()?)))
        else {
            return;
        };
        let timetable = match old {
            Some(old) if old.job_index == job.modify_index => old.timetable,
            _ => Timetable::new(periodic),
        };
        if let Some(look_at) = timetable.next(launched_until(snapshot, job)) {
            self.queue.insert((look_at, key.clone()));
            let entry = Entry {
                job_index: job.modify_index,
                timetable,
                look_at,
            };
            self.entries.insert(key, entry);
        }
    }

    fn remove(&mut self, key: &JobKey) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.queue.remove(&(entry.look_at, key.clone()));
        Some(entry)
    }

    /// Looks at a job whose time has come, and sees to it that it is looked at again.
    fn decide(&mut self, key: &JobKey, now: Timestamp, snapshot: &Snapshot) -> Option<Effect> {
        let mut entry = self.remove(key)?;
        let job = snapshot.job(key).filter(|job| job.value.is_launched())?;
        if job.modify_index != entry.job_index {
            self.refresh(key.clone(), snapshot);
            return None;
        }
        let launched = launched_until(snapshot, job);
        let due = entry.timetable.due(launched, now);
        entry.look_at = match due {
            Some(_) => now.plus(RETRY),
            // The record has moved, and the change that says so is on its way.
            None => entry.timetable.next(launched)?,
        };
        self.queue.insert((entry.look_at, key.clone()));
        self.entries.insert(key.clone(), entry);
        let due = Due {
            job: key.clone(),
            at: due?,
            job_index: job.modify_index,
        };
        Some(if would_overlap(snapshot, job) {
            Effect::Skip(due)
        } else {
            Effect::Launch(due)
        })
    }
}

fn is_put_periodic(change: &Change) -> bool {
    match change {
        Change::Put {
            entity: state::Entity::Job(job),
            ..
        } => job.is_launched(),
        _ => false,
    }
}

/// Tells whether anything that was launched before is not done, and the job minds.
fn would_overlap(snapshot: &Snapshot, job: &Indexed<Job>) -> bool {
    let periodic = job.value.periodic.as_ref();
    if !periodic.is_some_and(|periodic| periodic.prohibit_overlap) {
        return false;
    }
    let key = job.value.key();
    let mut children = snapshot.children(&key);
    children.any(|child| snapshot.is_at_work(&child.value.key()))
}

/// What one launch writes, beside comparing the job.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub record: PeriodicLaunch,
    /// The revision of the record that it replaces; `None`: there is none.
    pub record_index: Option<u64>,
    /// `None`: the child of this time exists already.
    pub child: Option<(Job, Evaluation)>,
}

/// Returns the record of `key` moved to `at`, and the revision of the one that it replaces.
pub fn moved(snapshot: &Snapshot, key: &JobKey, at: Timestamp) -> (PeriodicLaunch, Option<u64>) {
    let stored = snapshot.periodic_launch(key);
    // Never back: whatever clock said so, it was launched up to then.
    let before = stored.map_or(Timestamp::NEVER, |record| record.value.launched);
    let launched = Timestamp::from_secs(at.as_secs()).max(before);
    let record_index = stored.map(|record| record.modify_index);
    (PeriodicLaunch { launched }, record_index)
}

/// Returns what a launch that was decided on writes; `None`: somebody was faster, or the job has
/// changed, so it is decided on anew.
pub fn launch_due(
    snapshot: &Snapshot,
    due: &Due,
    eval_id: EvalId,
    now: Timestamp,
) -> Option<Launch> {
    let job = still_due(snapshot, due)?;
    // A child may have come since: of a launch that was slow, or of one by hand.
    if would_overlap(snapshot, job) {
        return None;
    }
    Some(launch(snapshot, &job.value, due.at, eval_id, now))
}

/// Returns what leaving a time out writes; `None` as in [`launch_due`].
pub fn skip_due(snapshot: &Snapshot, due: &Due) -> Option<Launch> {
    still_due(snapshot, due)?;
    let (record, record_index) = moved(snapshot, &due.job, due.at);
    Some(Launch {
        record,
        record_index,
        child: None,
    })
}

fn still_due<'a>(snapshot: &'a Snapshot, due: &Due) -> Option<&'a Indexed<Job>> {
    let job = snapshot.job(&due.job)?;
    let is_same = job.modify_index == due.job_index && job.value.is_launched();
    // A record that is there already says that this time was launched, or left out.
    (is_same && launched_until(snapshot, job) < due.at).then_some(job)
}

/// Returns what launching `job` for the time `at` writes.
pub fn launch(
    snapshot: &Snapshot,
    job: &Job,
    at: Timestamp,
    eval_id: EvalId,
    now: Timestamp,
) -> Launch {
    let (record, record_index) = moved(snapshot, &job.key(), at);
    let mut child = job.periodic_child(at, now);
    let key = child.key();
    child.version = snapshot.unused_version(&key);
    let eval = Evaluation::pending(
        eval_id,
        key.clone(),
        child.job_type,
        child.priority,
        TriggeredBy::PeriodicJob,
        now,
    );
    Launch {
        record,
        record_index,
        child: snapshot.job(&key).is_none().then_some((child, eval)),
    }
}
