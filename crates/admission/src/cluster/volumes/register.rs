//! Registration of volumes: new ones, and more capabilities of those that exist.

use model::{EvalId, FieldErrors, Indexed, Job, TriggeredBy, Volume, VolumeId};
use placement::Scope;
use state::{Entity, Key, Snapshot, Write};

use super::request::{VolumeContext, VolumeRefusal, pending};
use crate::cluster::change::VolumeRegistration;
use crate::cluster::namespaces;

/// The largest number of system jobs that are evaluated because of a new volume: with the volume
/// well below a transaction's 1,000 operations. The next change of the node evaluates the others.
const MAX_EVALS: usize = 500;

/// Decides on registering a volume. `next_id` is called once for each evaluation.
///
/// # Errors
/// There is no such node, or its configuration has a volume of that name, or a volume of that name
/// there is another.
pub fn register(
    snapshot: &Snapshot,
    wanted: &Volume,
    context: &VolumeContext,
    mut next_id: impl FnMut() -> EvalId,
) -> Result<VolumeRegistration<Volume>, VolumeRefusal> {
    let mut errors = FieldErrors::default();
    let name = &wanted.name;
    match snapshot.node(wanted.node_id) {
        None => errors.push(
            "volume.node_id",
            format!(
                "there is no node {}: want one of 'kafila node status -verbose'",
                wanted.node_id
            ),
        ),
        Some(node) if node.value.host_volumes.contains_key(name) => errors.push(
            "volume.name",
            format!(
                "node {:?} has a host volume {name:?} in its configuration: choose another name",
                node.value.name
            ),
        ),
        Some(_) => {}
    }
    let joining = format!("volume {name:?}");
    let join = namespaces::require(snapshot, &wanted.namespace, "volume.namespace", joining);
    let join = join.unwrap_or_else(|found| {
        errors.0.extend(found.0);
        None
    });
    let key = wanted.key();
    let stored = snapshot.volume(&key);
    if let Some(problem) = id_problem(wanted, stored.map(|stored| stored.value.id)) {
        errors.push("volume.id", problem);
    }
    if let Some(stored) = stored {
        check_change(&stored.value, wanted, &mut errors);
    }
    errors.into_result(())?;
    let (volume, write) = match stored {
        Some(stored) => {
            let old = &stored.value;
            if old.capabilities == wanted.capabilities && !old.deleting {
                return Ok(VolumeRegistration::Unchanged(Box::new(Indexed::clone(
                    stored,
                ))));
            }
            let volume = Volume {
                id: old.id,
                create_time: old.create_time,
                modify_time: context.now,
                deleting: false,
                ..wanted.clone()
            };
            let entity = Entity::Volume(Box::new(volume.clone()));
            let modify_index = stored.modify_index;
            let write = Write::Update {
                key: Key::Volume(key),
                modify_index,
                entity,
            };
            (volume, write)
        }
        None => {
            let volume = Volume {
                id: context.id,
                create_time: context.now,
                modify_time: context.now,
                deleting: false,
                ..wanted.clone()
            };
            let entity = Entity::Volume(Box::new(volume.clone()));
            let key = Key::Volume(key);
            (volume, Write::Create { key, entity })
        }
    };
    let mut writes = vec![write];
    writes.extend(join);
    let jobs = wanted_everywhere(snapshot, &volume).take(MAX_EVALS);
    writes.extend(jobs.map(|job| {
        let mut eval = pending(job, TriggeredBy::NodeUpdate, next_id(), context);
        eval.node_id = Some(volume.node_id);
        Write::create_eval(eval)
    }));
    Ok(VolumeRegistration::Write {
        volume: Box::new(volume),
        writes,
    })
}

fn id_problem(wanted: &Volume, stored: Option<VolumeId>) -> Option<String> {
    if wanted.id == VolumeId::default() || stored == Some(wanted.id) {
        return None;
    }
    Some(match stored {
        Some(stored) => format!(
            "the volume {:?} of this node has the id {stored}: want that, or none",
            wanted.name
        ),
        None => "there is no such volume on this node yet: want none, one is made".to_owned(),
    })
}

/// Checks that everything stays that a plan may rely on.
fn check_change(old: &Volume, new: &Volume, errors: &mut FieldErrors) {
    if old.host_path != new.host_path {
        errors.push(
            "volume.host_path",
            format!(
                "the volume is at {:?}: delete it and register it anew, or choose another name",
                old.host_path
            ),
        );
    }
    let mut capabilities = old.capabilities.iter();
    if !capabilities.all(|capability| new.allows(*capability)) {
        errors.push(
            "volume.capability",
            "one that the volume has is not among them: want those and more, or delete the volume \
             and register it anew",
        );
    }
}

/// Returns the system jobs that ask for the volume and may run on its node.
fn wanted_everywhere<'s>(
    snapshot: &'s Snapshot,
    volume: &'s Volume,
) -> impl Iterator<Item = &'s Job> {
    let node = snapshot.node(volume.node_id);
    let jobs = snapshot.jobs().map(|job| &job.value);
    jobs.filter(move |job| {
        let mut asks = job.task_groups.iter().flat_map(|it| it.volumes.values());
        job.job_type.is_per_node()
            && !job.stop
            && job.namespace == volume.namespace
            && asks.any(|ask| !ask.is_csi() && ask.source == volume.name)
            && node.is_some_and(|node| Scope::new(job).contains(&node.value))
    })
}
