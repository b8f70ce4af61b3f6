//! Reader of the gateways' assignments, from the wire into [`Update`]s.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lifecycle::{Assigned, Assignment, InvalidAssignment, JoblessAssignment, Update};
use model::{Allocation, ClientStatus, FieldErrors, Job, Timestamp};
use proto::internal::v1::{AllocationsUpdate, Assignment as WireAssignment};
use proto::v1;
use tracing::{debug, error, warn};

/// Reader of one stream, which sends each job version once.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// (namespace, job id, version) → job.
    jobs: HashMap<(String, String, u64), Arc<Job>>,
}

impl Reader {
    /// Reads one message. Invalid assignments are returned beside the valid ones, for
    /// [`lifecycle::changes`] to compare with the node's allocations.
    pub(crate) fn read(&mut self, wire: AllocationsUpdate) -> Update {
        for job in wire.jobs {
            let id = job.id.clone().unwrap_or_default();
            match read_job(&job) {
                Ok(job) => {
                    let key = (job.namespace.clone(), job.id.clone(), job.version);
                    self.jobs.insert(key, Arc::new(job));
                }
                Err(errors) => error!(job_id = id, %errors, "cannot read a job"),
            }
        }
        let mut update = Update {
            revision: wire.revision,
            store_id: wire.store_id,
            is_full: wire.full,
            ..Update::default()
        };
        for assignment in wire.assignments {
            let number = assignment.report_number;
            let reported = assignment.allocation.as_ref().filter(|_| number > 0);
            if let Some(alloc_id) = reported.and_then(|alloc| alloc.id.parse().ok()) {
                update.numbers.insert(alloc_id, number);
            }
            match self.read_assignment(assignment) {
                Ok(assigned) => update.assigned.push(assigned),
                Err(Some(invalid)) => {
                    let InvalidAssignment {
                        alloc_id, reason, ..
                    } = &invalid;
                    if is_end_without_job(&invalid) {
                        debug!(%alloc_id, reason, "an allocation that ends has no job any more");
                    } else {
                        warn!(%alloc_id, reason, "cannot read an assignment");
                    }
                    update.invalid.push(invalid);
                }
                Err(None) => {
                    error!("ignoring an assignment without an allocation id");
                    update.has_nameless = true;
                }
            }
        }
        update.removed = wire
            .removed_alloc_ids
            .iter()
            .filter_map(|id| id.parse().ok())
            .collect();
        update
    }

    /// # Errors
    /// The invalid part; `None`: the allocation's id is not readable.
    fn read_assignment(&self, wire: WireAssignment) -> Result<Assigned, Option<InvalidAssignment>> {
        let allocation = wire.allocation.ok_or(None)?;
        let alloc_id = allocation.id.parse().map_err(|_| None)?;
        let modify_index = allocation.alloc_modify_index;
        let status = ClientStatus::parse(&allocation.client_status);
        let is_client_terminal = status.is_some_and(ClientStatus::is_terminal);
        let mut invalid = InvalidAssignment {
            alloc_id,
            deployment_id: allocation.deployment_id.parse().ok(),
            reason: String::new(),
            is_client_terminal,
            jobless: None,
        };
        let alloc = match Allocation::try_from(allocation) {
            Ok(alloc) => Arc::new(alloc),
            Err(errors) => {
                invalid.reason = errors.to_string();
                return Err(Some(invalid));
            }
        };
        let key = (
            alloc.namespace.to_string(),
            alloc.job_id.to_string(),
            alloc.job_version,
        );
        let volume_paths: BTreeMap<_, _> = wire.volume_paths.into_iter().collect();
        let jobless = |alloc: &Arc<Allocation>| JoblessAssignment {
            alloc: Arc::clone(alloc),
            modify_index,
            trace_parent: wire.trace_parent.clone(),
            volume_paths: volume_paths.clone(),
        };
        let Some(job) = self.jobs.get(&key) else {
            let (namespace, id, version) = key;
            invalid.reason = format!("job {namespace}/{id} version {version} cannot be read");
            invalid.jobless = Some(Box::new(jobless(&alloc)));
            return Err(Some(invalid));
        };
        if job.task_group(&alloc.task_group).is_none() {
            invalid.reason = format!("its job has no group {:?}", alloc.task_group);
            invalid.jobless = Some(Box::new(jobless(&alloc)));
            return Err(Some(invalid));
        }
        let assignment = Assignment {
            alloc,
            job: Arc::clone(job),
            modify_index,
            trace_parent: wire.trace_parent,
            volume_paths,
        };
        Ok(Assigned {
            assignment,
            is_client_terminal,
        })
    }
}

/// Returns whether an allocation has ended or has to end, and lacks its job alone. No problem: its job was
/// purged, and an end needs none.
fn is_end_without_job(invalid: &InvalidAssignment) -> bool {
    let jobless = invalid.jobless.as_ref();
    jobless.is_some_and(|jobless| invalid.is_client_terminal || jobless.alloc.is_server_terminal())
}

/// Reads a stored job: its spec with all defaults.
fn read_job(wire: &v1::Job) -> Result<Job, FieldErrors> {
    let submit_time = Timestamp(wire.submit_time_ns());
    let admitted = jobspec::canonicalise(wire, submit_time)?;
    Ok(Job {
        version: wire.version(),
        ..admitted.job
    })
}
