//! The tally of a job: ended allocations and children that are no longer stored.

use model::{JobKey, JobTally};
use state::{Entity, Key, Write};

/// Returns the write that adds `more` to a job's tally, and the sum. `stored` is the tally with its
/// modify index.
pub fn add(job: &JobKey, more: &JobTally, stored: Option<(&JobTally, u64)>) -> (Write, JobTally) {
    // The tally of an earlier job of that id is replaced.
    let same_job = stored.filter(|(tally, _)| tally.job_create_index == more.job_create_index);
    let sum = match same_job {
        Some((tally, _)) => {
            let mut sum = tally.clone();
            sum.add(more);
            sum
        }
        None => more.clone(),
    };
    let modify_index = stored.map_or(0, |(_, modify_index)| modify_index);
    let entity = Entity::JobTally(Box::new(sum.clone()));
    (
        Write::put(Key::JobTally(job.clone()), modify_index, entity),
        sum,
    )
}
