//! Registration of volumes: new ones, and changed ones.

use model::{
    CsiVolume, EvalId, Evaluation, FieldErrors, Indexed, Job, JobType, Timestamp, TriggeredBy,
};
use placement::csi::holders;
use state::{Entity, Key, Snapshot, Write};

use super::CsiRefusal;
use crate::cluster::change::VolumeRegistration;
use crate::cluster::namespaces;

/// The largest number of system jobs that are evaluated because of a volume: with the volume well below
/// a transaction's 1,000 operations. The next change of a node evaluates the others.
const MAX_EVALS: usize = 500;

/// Inputs of a registration that no snapshot has.
#[derive(Clone, Debug)]
pub struct Context {
    pub now: Timestamp,
    pub trace_parent: String,
}

/// Decides on registering a volume that has passed its check. `next_id` is called once for each
/// evaluation.
///
/// # Errors
/// The namespace does not exist, or the registered volume of this id cannot become the requested one.
pub fn register(
    snapshot: &Snapshot,
    wanted: &CsiVolume,
    context: &Context,
    mut next_id: impl FnMut() -> EvalId,
) -> Result<VolumeRegistration<CsiVolume>, CsiRefusal> {
    let joining = format!("volume {:?}", wanted.id);
    let join = namespaces::require(snapshot, &wanted.namespace, "volume.namespace", joining)?;
    let key = wanted.key();
    let stored = snapshot.csi_volume(&key);
    let mut volume = CsiVolume {
        deleting: false,
        create_time: context.now,
        modify_time: context.now,
        attach_count: 0,
        ..wanted.clone()
    };
    let modify_index = match stored {
        None => 0,
        Some(stored) => {
            let old = &stored.value;
            check_change(snapshot, old, wanted)?;
            volume.create_time = old.create_time;
            volume.attach_count = old.attach_count;
            let same = CsiVolume {
                modify_time: old.modify_time,
                ..volume.clone()
            };
            if same == *old {
                return Ok(VolumeRegistration::Unchanged(Box::new(Indexed::clone(
                    stored,
                ))));
            }
            stored.modify_index
        }
    };
    let entity = Entity::CsiVolume(Box::new(volume.clone()));
    let mut writes = vec![Write::put(Key::CsiVolume(key), modify_index, entity)];
    writes.extend(join);
    let jobs = wanted_everywhere(snapshot, &volume).take(MAX_EVALS);
    writes.extend(jobs.map(|job| {
        let (trigger, id) = (TriggeredBy::NodeUpdate, next_id());
        let (job_type, priority) = (job.job_type, job.priority);
        let mut eval = Evaluation::pending(id, job.key(), job_type, priority, trigger, context.now);
        eval.trace_parent.clone_from(&context.trace_parent);
        Write::create_eval(eval)
    }));
    Ok(VolumeRegistration::Write {
        volume: Box::new(volume),
        writes,
    })
}

/// Checks that everything stays that a plan or a mount may rely on.
fn check_change(snapshot: &Snapshot, old: &CsiVolume, new: &CsiVolume) -> Result<(), CsiRefusal> {
    let mut errors = FieldErrors::default();
    for (field, old, new) in [
        ("volume.plugin_id", &old.plugin_id, &new.plugin_id),
        ("volume.external_id", &old.external_id, &new.external_id),
    ] {
        if old != new {
            let message =
                format!("the volume has {old:?}: deregister it first, or want another id");
            errors.push(field, message);
        }
    }
    let mut capabilities = old.capabilities.iter();
    let loses = !capabilities.all(|capability| new.allows(*capability));
    if loses && holders::of(snapshot, &old.key()).next().is_some() {
        errors.push(
            "volume.capability",
            "one that the volume has is not among them, and allocations use it: want those and more, or \
             stop the allocations first",
        );
    }
    Ok(errors.into_result(())?)
}

/// Returns the system jobs that ask for the volume.
fn wanted_everywhere<'s>(
    snapshot: &'s Snapshot,
    volume: &'s CsiVolume,
) -> impl Iterator<Item = &'s Job> {
    let jobs = snapshot.jobs().map(|job| &job.value);
    jobs.filter(|job| {
        let mut asks = job.task_groups.iter().flat_map(|it| it.volumes.values());
        matches!(job.job_type, JobType::System | JobType::Sysbatch)
            && !job.stop
            && job.namespace == volume.namespace
            && asks.any(|ask| ask.is_csi() && ask.source == volume.id)
    })
}
