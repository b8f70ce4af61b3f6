//! Writes that several deciders share: evaluations, new jobs, launch records, and the objects that a
//! purge deletes with a job.

use model::{
    Allocation, DesiredTransition, Evaluation, Indexed, Job, JobKey, JobTally, JobType, Timestamp,
    TriggeredBy,
};
use state::{AllocView, Entity, Key, Snapshot, Write};

use super::decision::RequestContext;

/// Returns the evaluation of a request.
pub(super) fn evaluation(
    context: &RequestContext,
    job: &Job,
    job_type: JobType,
    priority: u8,
    triggered_by: TriggeredBy,
) -> Evaluation {
    let (id, key) = (context.eval_id, job.key());
    let mut eval = Evaluation::pending(id, key, job_type, priority, triggered_by, context.now);
    eval.trace_parent.clone_from(&context.trace_parent);
    eval
}

/// Returns the write that asks the scheduler for `transition` of an allocation.
pub(super) fn transition_to(
    view: &AllocView,
    transition: DesiredTransition,
    now: Timestamp,
) -> Write {
    let alloc = Allocation {
        transition,
        modify_time: now,
        ..(*view.alloc).clone()
    };
    Write::Update {
        key: Key::Alloc(alloc.id),
        modify_index: view.alloc_modify_index,
        entity: Entity::Alloc(Box::new(alloc)),
    }
}

/// Returns the writes beside an evaluation of an unchanged job.
///
/// The garbage collector of a dead job may not have seen the evaluation, and the job's own key does
/// not change with it. So the version is written again, which the collector compares; the job keeps
/// its index. A running service is not collected.
pub(super) fn evaluated(snapshot: &Snapshot, stored: &Indexed<Job>) -> Vec<Write> {
    let job = &stored.value;
    let runs_to_end = job.job_type.runs_to_end();
    let version = snapshot.job_version(&job.key(), job.version);
    let touched = version.filter(|_| job.stop || runs_to_end).map(|version| {
        let entity = Entity::JobVersion(Box::new(version.value.clone()));
        Write::Update {
            key: Key::JobVersion(job.key(), job.version),
            modify_index: version.modify_index,
            entity,
        }
    });
    [Write::job_unchanged(stored)]
        .into_iter()
        .chain(touched)
        .collect()
}

/// Returns the writes of a job that does not exist yet.
pub(super) fn create_job(job: Job) -> [Write; 2] {
    let key = job.key();
    let job = Box::new(job);
    [
        Write::Create {
            key: Key::JobVersion(key.clone(), job.version),
            entity: Entity::JobVersion(job.clone()),
        },
        Write::Create {
            key: Key::Job(key),
            entity: Entity::Job(job),
        },
    ]
}

/// Returns the write of the launch record of a periodic job that changes from `stored` to `job`. A
/// job that was not launched before is launched from now on, and not for past times.
pub(super) fn begin(
    snapshot: &Snapshot,
    job: &Job,
    stored: Option<&Job>,
    now: Timestamp,
) -> Option<Write> {
    job.periodic.as_ref()?;
    let key = job.key();
    let goes_on = stored.is_some_and(|stored| {
        stored.is_launched() && stored.periodic == job.periodic
            || !job.is_launched() && snapshot.periodic_launch(&key).is_some()
    });
    if goes_on && snapshot.periodic_launch(&key).is_some() {
        return None;
    }
    let (record, modify_index) = periodic_launch::advanced(snapshot, &key, now);
    let record = Entity::PeriodicLaunch(record);
    Some(Write::put(Key::PeriodicLaunch(key), modify_index, record))
}

/// Returns the deletions of the objects that belong to a purged job.
pub(super) fn forget(snapshot: &Snapshot, stored: &Indexed<Job>) -> Vec<Write> {
    let (job, key) = (&stored.value, stored.value.key());
    let mut writes = Vec::new();
    if let Some(record) = snapshot.periodic_launch(&key) {
        writes.push(Write::Delete {
            key: Key::PeriodicLaunch(key.clone()),
            modify_index: record.modify_index,
        });
    }
    for (group, events) in snapshot.scaling_events_by_job(&key).take(MAX_GROUPS) {
        writes.push(Write::Delete {
            key: Key::ScalingEvents(key.clone(), group.to_owned()),
            modify_index: events.modify_index,
        });
    }
    if job.parent_id.is_empty() {
        return writes;
    }
    let parent = JobKey::new(job.namespace.as_str(), job.parent_id.as_str());
    let token = snapshot.dispatch_token(&parent, &job.dispatch_token);
    if let Some(token) = token.filter(|token| token.value.child_id == job.id) {
        writes.push(Write::Delete {
            key: Key::DispatchToken(parent.clone(), job.dispatch_token.clone()),
            modify_index: token.modify_index,
        });
    }
    writes.extend(count_child(snapshot, &parent));
    writes
}

/// The largest number of groups whose scaling events a purge deletes: with the versions, well below
/// a transaction's 1,000 operations. The rest is collected as garbage.
const MAX_GROUPS: usize = 100;

/// Returns the write that counts a purged child in its parent's summary.
fn count_child(snapshot: &Snapshot, parent: &JobKey) -> Option<Write> {
    let stored = snapshot.job(parent)?;
    let one = JobTally {
        job_create_index: stored.create_index,
        children: 1,
        ..JobTally::default()
    };
    let key = Key::JobTally(parent.clone());
    Some(match snapshot.job_tally(parent) {
        None => Write::Create {
            key,
            entity: Entity::JobTally(Box::new(one)),
        },
        Some(row) => {
            let mut tally = one;
            if row.value.job_create_index == stored.create_index {
                let more = std::mem::replace(&mut tally, row.value.clone());
                tally.add(&more);
            }
            Write::Update {
                key,
                modify_index: row.modify_index,
                entity: Entity::JobTally(Box::new(tally)),
            }
        }
    })
}
