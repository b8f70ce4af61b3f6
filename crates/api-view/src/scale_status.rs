//! Counts and scaling events of a job's groups.

use std::collections::BTreeMap;

use model::{ClientStatus, Indexed, Job, JobKey};
use proto::v1;
use state::Snapshot;

/// Returns the counts and scaling events of a job's groups.
pub fn scale_status(
    snapshot: &Snapshot,
    key: &JobKey,
    job: &Indexed<Job>,
) -> v1::GetJobScaleStatusResponse {
    let mut groups = BTreeMap::<&str, v1::TaskGroupScaleStatus>::new();
    for group in &job.value.task_groups {
        let status = groups.entry(group.name.as_str()).or_default();
        status.desired = group.count;
        let events = snapshot.scaling_events(key, &group.name);
        let own = events.filter(|events| events.value.job_create_index == job.create_index);
        status.events = own.map_or_else(Vec::new, |row| {
            let events = row.value.events.iter();
            let shown = events.map(|event| v1::ScalingEvent::from_stored(event, row.modify_index));
            shown.collect()
        });
    }
    for view in snapshot.allocs_by_job(key) {
        let is_former = view.alloc.job_create_index != job.create_index;
        let Some(status) = groups.get_mut(&*view.alloc.task_group) else {
            continue;
        };
        if is_former || view.is_terminal() {
            continue;
        }
        status.placed += 1;
        status.running += u32::from(view.client_status() == ClientStatus::Running);
        match view.health() {
            Some(health) if health.healthy => status.healthy += 1,
            Some(_) => status.unhealthy += 1,
            None => {}
        }
    }
    let groups = groups.into_iter();
    v1::GetJobScaleStatusResponse {
        meta: None,
        job_id: job.value.id.clone(),
        namespace: job.value.namespace.clone(),
        job_create_index: job.create_index,
        job_modify_index: job.modify_index,
        job_stopped: job.value.stop,
        task_groups: groups
            .map(|(name, status)| (name.to_owned(), status))
            .collect(),
    }
}
