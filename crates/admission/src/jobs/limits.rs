//! Limits of evaluations: how many may be open, and which priority they may have.

use model::FieldErrors;
use model::job::MAX_PRIORITY;
use state::Snapshot;

use super::refusal::JobRefusal;

/// Refuses a request that creates an evaluation while too many are open.
///
/// # Errors
/// [`JobRefusal::Overloaded`].
pub(super) fn check_open_evals(
    snapshot: &Snapshot,
    max_open_evals: usize,
) -> Result<(), JobRefusal> {
    let open = snapshot.open_eval_count();
    if open >= max_open_evals {
        return Err(JobRefusal::Overloaded { open });
    }
    Ok(())
}

/// Reads the priority that a request asks for its evaluation; 0: the job's own.
///
/// # Errors
/// More than 100.
pub fn eval_priority(requested: u32) -> Result<Option<u8>, FieldErrors> {
    match u8::try_from(requested) {
        Ok(0) => Ok(None),
        Ok(priority) if priority <= MAX_PRIORITY => Ok(Some(priority)),
        _ => {
            let mut errors = FieldErrors::default();
            errors.push(
                "eval_priority",
                format!(
                    "{requested} is too high: want 1 to {MAX_PRIORITY}, or 0 for the job's own"
                ),
            );
            Err(errors)
        }
    }
}
