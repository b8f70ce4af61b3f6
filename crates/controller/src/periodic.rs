//! Launches of periodic jobs: when each job is due, and the writes of a launch.
//!
//! Pure: changes and the time go in, launches come out. The launch record of a job holds the time of
//! its last launch, and every launch compares and advances it. So neither two leaders nor a late
//! write launch the same time twice. In memory is only the next deadline of each job, which a new
//! leader derives from the replica.
//!
//! Missed launches are made up once, for the latest of the missed times.
//! If the job prohibits overlap and a child is still active, the time is skipped: the record
//! advances and nothing is launched.
//!
//! [`Launcher`] watches all periodic jobs; the crate `periodic_launch` has the times of one job and the
//! writes of a launch.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{EvalId, Indexed, Job, JobKey, Timestamp};
use periodic_launch::{Launch, Timetable, advanced, launch, launched_until};
use state::{Change, Key, Snapshot, Write};

/// The time in which a launch must succeed before it is requested again. A slower launch is not
/// lost: the second attempt finds the record advanced.
const RETRY: Duration = Duration::from_secs(5);

/// Launches that one step requests at most; the next step, right after it, requests more. At
/// midnight all daily jobs are due, and the loop has to see other events in between.
pub(crate) const PER_STEP: usize = 256;

/// A launch of one job for one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub job: JobKey,
    /// Whole seconds; the child's id contains it.
    pub at: Timestamp,
    /// The job's modify index that the launch was decided on.
    pub job_index: u64,
}

/// A requested write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Launch(Due),
    /// A child is still active and the job prohibits overlap: only advance the record.
    Skip(Due),
}

#[derive(Debug)]
struct Entry {
    job_index: u64,
    timetable: Timetable,
    /// The next deadline.
    look_at: Timestamp,
}

/// Watches all periodic jobs.
#[derive(Debug, Default)]
pub struct Launcher {
    entries: BTreeMap<JobKey, Entry>,
    /// The entries by deadline.
    queue: BTreeSet<(Timestamp, JobKey)>,
    /// Jobs with a change of the job or its launch record.
    changed: BTreeSet<JobKey>,
}

impl Launcher {
    /// Records changes; [`Self::step`] acts on them.
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

    /// Starts over: every job is examined by the next step.
    pub fn resync(&mut self, snapshot: &Snapshot) {
        self.changed.extend(self.entries.keys().cloned());
        self.changed.extend(snapshot.launched_jobs().cloned());
    }

    /// Returns the launches that are due. A launch that fails is requested again after a timeout.
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

    /// Returns the time of the next step; `None`: only a change can make a job due.
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

    /// Decides on a job whose deadline has passed, and sets its next deadline.
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
            // The record has advanced already.
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

/// Tells whether the job prohibits overlap and one of its children is still active.
fn would_overlap(snapshot: &Snapshot, job: &Indexed<Job>) -> bool {
    let periodic = job.value.periodic.as_ref();
    if !periodic.is_some_and(|periodic| periodic.prohibit_overlap) {
        return false;
    }
    let key = job.value.key();
    let mut children = snapshot.children(&key);
    children.any(|child| snapshot.is_at_work(&child.value.key()))
}

/// Returns the writes of a launch that [`Launcher::step`] requested; `None`: another launch was
/// faster, or the job has changed and is decided on again.
pub fn launch_due(
    snapshot: &Snapshot,
    due: &Due,
    eval_id: EvalId,
    now: Timestamp,
) -> Option<Vec<Write>> {
    let job = still_due(snapshot, due)?;
    // A child may have been created since, by a slow launch or a forced one.
    if would_overlap(snapshot, job) {
        return None;
    }
    let launch = launch(snapshot, &job.value, due.at, eval_id, now);
    Some(job_unchanged(due, launch))
}

/// Returns the writes that skip a time; `None` as in [`launch_due`].
pub fn skip_due(snapshot: &Snapshot, due: &Due) -> Option<Vec<Write>> {
    still_due(snapshot, due)?;
    let (record, record_index) = advanced(snapshot, &due.job, due.at);
    let skip = Launch {
        job: due.job.clone(),
        record,
        record_index,
        child: None,
    };
    Some(job_unchanged(due, skip))
}

fn job_unchanged(due: &Due, launch: Launch) -> Vec<Write> {
    let mut writes = launch.into_writes();
    writes.push(Write::RequireUnchanged {
        key: Key::Job(due.job.clone()),
        modify_index: due.job_index,
    });
    writes
}

fn still_due<'a>(snapshot: &'a Snapshot, due: &Due) -> Option<&'a Indexed<Job>> {
    let job = snapshot.job(&due.job)?;
    let is_same = job.modify_index == due.job_index && job.value.is_launched();
    // A later record says that this time was launched or skipped.
    (is_same && launched_until(snapshot, job) < due.at).then_some(job)
}
