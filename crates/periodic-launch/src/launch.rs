//! Launch records, and the writes of one launch: the record, the child job and its evaluation.

use model::{EvalId, Evaluation, Indexed, Job, JobKey, PeriodicLaunch, Timestamp, TriggeredBy};
use state::{Entity, Key, Snapshot, Write};

use crate::timetable::Timetable;

/// Returns the time of a periodic job's last launch by its record, or else its registration.
pub fn launched_until(snapshot: &Snapshot, job: &Indexed<Job>) -> Timestamp {
    let record = snapshot.periodic_launch(&job.value.key());
    record.map_or(job.value.submit_time, |record| record.value.launched)
}

/// Returns the time of a job's next launch after `now`; `None`: there is none.
pub fn next_launch(snapshot: &Snapshot, job: &Indexed<Job>, now: Timestamp) -> Option<Timestamp> {
    first_launch(&job.value, launched_until(snapshot, job).max(now))
}

/// Returns the first launch of a job that is registered `now`; `None`: there is none.
pub fn first_launch(job: &Job, now: Timestamp) -> Option<Timestamp> {
    let periodic = job.periodic.as_ref().filter(|_| job.is_launched())?;
    Timetable::new(periodic).next(now)
}

/// One launch, before it becomes writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub job: JobKey,
    pub record: PeriodicLaunch,
    /// The modify index of the record that it replaces; 0: there is none.
    pub record_index: u64,
    /// `None`: the child of this time exists already.
    pub child: Option<(Job, Evaluation)>,
}

impl Launch {
    /// Returns the writes of the launch. They compare the launch record; to compare the job is up to
    /// the caller, as is the trace of the evaluation.
    pub fn into_writes(self) -> Vec<Write> {
        let record = Entity::PeriodicLaunch(self.record);
        let key = Key::PeriodicLaunch(self.job);
        let mut writes = vec![Write::put(key, self.record_index, record)];
        if let Some((child, eval)) = self.child {
            let key = child.key();
            let child = Box::new(child);
            writes.push(Write::Create {
                key: Key::JobVersion(key.clone(), child.version),
                entity: Entity::JobVersion(child.clone()),
            });
            writes.push(Write::Create {
                key: Key::Job(key),
                entity: Entity::Job(child),
            });
            writes.push(Write::create_eval(eval));
        }
        writes
    }
}

/// Returns the record of `key` advanced to `at`, and the modify index of the record that it
/// replaces; 0: there is none.
pub fn advanced(snapshot: &Snapshot, key: &JobKey, at: Timestamp) -> (PeriodicLaunch, u64) {
    let stored = snapshot.periodic_launch(key);
    // Never back: whichever clock was right, the job was launched up to then.
    let before = stored.map_or(Timestamp::NEVER, |record| record.value.launched);
    let launched = Timestamp::from_secs(at.as_secs()).max(before);
    let record_index = stored.map_or(0, |record| record.modify_index);
    (PeriodicLaunch { launched }, record_index)
}

/// Returns the launch of `job` for the time `at`.
pub fn launch(
    snapshot: &Snapshot,
    job: &Job,
    at: Timestamp,
    eval_id: EvalId,
    now: Timestamp,
) -> Launch {
    let (record, record_index) = advanced(snapshot, &job.key(), at);
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
        job: job.key(),
        record,
        record_index,
        child: snapshot.job(&key).is_none().then_some((child, eval)),
    }
}
