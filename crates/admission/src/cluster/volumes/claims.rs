//! Release of claims on volumes.

use model::{EvalId, Indexed, TriggeredBy, VolumeClaim, VolumeClaimId};
use state::{Key, Snapshot, Write};

use super::request::{VolumeContext, pending};

/// Returns the deletion of a claim.
pub(crate) fn delete_claim(claim: &Indexed<VolumeClaim>) -> Write {
    Write::Delete {
        key: Key::VolumeClaim(claim.value.id()),
        modify_index: claim.modify_index,
    }
}

/// Decides on releasing a claim. Its job is evaluated, because it may have been waiting for this;
/// `None`: there is no such claim.
pub fn release(
    snapshot: &Snapshot,
    id: VolumeClaimId,
    eval_id: EvalId,
    context: &VolumeContext,
) -> Option<Vec<Write>> {
    let claim = snapshot.volume_claim(id)?;
    let mut writes = vec![delete_claim(claim)];
    let job = snapshot.job(&claim.value.job_key()).map(|job| &job.value);
    if let Some(job) = job.filter(|job| !job.stop) {
        let eval = pending(job, TriggeredBy::QueuedAllocs, eval_id, context);
        writes.push(Write::create_eval(eval));
    }
    Some(writes)
}
