//! Allocations.

mod resources;

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

use self::resources::{AllocatedResources, Resources};
use crate::metric::AllocMetric;
use crate::time;
use crate::time::nanoseconds;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Allocation<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    #[serde(rename = "EvalID")]
    eval_id: &'a str,
    name: &'a str,
    namespace: &'a str,
    #[serde(rename = "NodeID")]
    node_id: &'a str,
    node_name: &'a str,
    #[serde(rename = "JobID")]
    job_id: &'a str,
    job_type: &'a str,
    job_version: u64,
    task_group: &'a str,
    /// The job version that the allocation runs. In lists, and after it was deleted, it is absent, as are
    /// the other fields that follow from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a v1::Job>,
    resources: Option<Resources>,
    shared_resources: Option<Resources>,
    /// Resources that each task asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_resources: Option<BTreeMap<&'a str, Option<&'a v1::Resources>>>,
    allocated_resources: Option<AllocatedResources<'a>>,
    desired_status: &'a str,
    desired_description: &'a str,
    desired_transition: DesiredTransition,
    client_status: &'a str,
    client_description: &'a str,
    task_states: BTreeMap<&'a str, TaskState<'a>>,
    #[serde(rename = "DeploymentID")]
    deployment_id: &'a str,
    deployment_status: Option<DeploymentStatus>,
    network_status: Option<NetworkStatus<'a>>,
    #[serde(rename = "FollowupEvalID")]
    followup_eval_id: &'a str,
    previous_allocation: &'a str,
    next_allocation: &'a str,
    preempted_by_allocation: &'a str,
    preempted_allocations: &'a [String],
    reschedule_tracker: Option<RescheduleTracker<'a>>,
    metrics: Option<AllocMetric<'a>>,
    create_index: u64,
    modify_index: u64,
    alloc_modify_index: u64,
    create_time: u64,
    modify_time: u64,
}

impl<'a> From<&'a v1::Allocation> for Allocation<'a> {
    fn from(alloc: &'a v1::Allocation) -> Self {
        Self::new(alloc, None)
    }
}

impl<'a> Allocation<'a> {
    /// Returns an allocation with the job version that it runs.
    pub fn new(alloc: &'a v1::Allocation, job: Option<&'a v1::Job>) -> Self {
        let states = alloc.task_states.iter();
        let mut groups = job.into_iter().flat_map(|job| &job.task_groups);
        let group = groups.find(|group| group.name() == alloc.task_group);
        let held = alloc.resources.as_ref();
        Self {
            id: &alloc.id,
            eval_id: &alloc.eval_id,
            name: &alloc.name,
            namespace: &alloc.namespace,
            node_id: &alloc.node_id,
            node_name: &alloc.node_name,
            job_id: &alloc.job_id,
            job_type: &alloc.job_type,
            job_version: alloc.job_version,
            task_group: &alloc.task_group,
            job,
            resources: held.map(Resources::total),
            shared_resources: held.map(Resources::shared),
            task_resources: group.map(|group| {
                let tasks = group.tasks.iter();
                tasks
                    .map(|task| (task.name(), task.resources.as_ref()))
                    .collect()
            }),
            allocated_resources: held.map(|held| AllocatedResources::new(held, group)),
            desired_status: &alloc.desired_status,
            desired_description: &alloc.desired_description,
            desired_transition: alloc.desired_transition.unwrap_or_default().into(),
            client_status: &alloc.client_status,
            client_description: &alloc.client_description,
            task_states: states
                .map(|(task, state)| (task.as_str(), state.into()))
                .collect(),
            deployment_id: &alloc.deployment_id,
            deployment_status: DeploymentStatus::of(alloc),
            network_status: alloc.network_status.as_ref().map(Into::into),
            followup_eval_id: &alloc.followup_eval_id,
            previous_allocation: &alloc.previous_alloc_id,
            next_allocation: &alloc.next_alloc_id,
            preempted_by_allocation: &alloc.preempted_by_alloc_id,
            preempted_allocations: &alloc.preempted_alloc_ids,
            reschedule_tracker: RescheduleTracker::of(alloc),
            metrics: alloc
                .metric
                .as_ref()
                .map(|metric| AllocMetric::placed(metric, &alloc.node_id)),
            create_index: alloc.create_index,
            modify_index: alloc.modify_index,
            alloc_modify_index: alloc.alloc_modify_index,
            create_time: alloc.create_time_ns,
            modify_time: alloc.modify_time_ns,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NetworkStatus<'a> {
    interface_name: &'a str,
    address: &'a str,
    #[serde(rename = "AddressIPv6")]
    address_ipv6: &'a str,
}

impl<'a> From<&'a v1::NetworkStatus> for NetworkStatus<'a> {
    fn from(status: &'a v1::NetworkStatus) -> Self {
        Self {
            interface_name: &status.interface_name,
            address: &status.address,
            address_ipv6: &status.address_ipv6,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DesiredTransition {
    migrate: bool,
    reschedule: bool,
    force_reschedule: bool,
    migrate_disable_placement: bool,
    no_shutdown_delay: bool,
}

impl From<v1::DesiredTransition> for DesiredTransition {
    fn from(transition: v1::DesiredTransition) -> Self {
        Self {
            migrate: transition.migrate,
            reschedule: transition.reschedule,
            force_reschedule: transition.force_reschedule,
            migrate_disable_placement: transition.migrate_disable_placement,
            no_shutdown_delay: transition.no_shutdown_delay,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TaskState<'a> {
    state: &'a str,
    failed: bool,
    restarts: u32,
    last_restart: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    events: Vec<TaskEvent<'a>>,
}

impl<'a> From<&'a v1::TaskState> for TaskState<'a> {
    fn from(state: &'a v1::TaskState) -> Self {
        let event = |event: &'a v1::TaskEvent| TaskEvent {
            r#type: &event.r#type,
            time: event.time_ns,
            display_message: &event.display_message,
            details: event
                .details
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect(),
        };
        Self {
            state: &state.state,
            failed: state.failed,
            restarts: state.restarts,
            last_restart: time::json(state.last_restart_at_ns),
            started_at: time::json(state.started_at_ns),
            finished_at: time::json(state.finished_at_ns),
            events: state.events.iter().map(event).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TaskEvent<'a> {
    r#type: &'a str,
    time: u64,
    display_message: &'a str,
    details: BTreeMap<&'a str, &'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DeploymentStatus {
    healthy: Option<bool>,
    timestamp: Option<String>,
    canary: bool,
}

impl DeploymentStatus {
    /// `None` for an allocation that is part of no deployment.
    fn of(alloc: &v1::Allocation) -> Option<Self> {
        let health = alloc.deployment_health.as_ref();
        (!alloc.deployment_id.is_empty() || health.is_some()).then(|| Self {
            healthy: health.map(|health| health.healthy),
            timestamp: health.and_then(|health| time::json(health.time_ns)),
            canary: alloc.canary,
        })
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct RescheduleTracker<'a> {
    events: Vec<RescheduleEvent<'a>>,
}

#[derive(Debug, Serialize)]
struct RescheduleEvent<'a> {
    #[serde(rename = "RescheduleTime")]
    time: u64,
    #[serde(rename = "PrevAllocID")]
    previous_alloc_id: &'a str,
    #[serde(rename = "PrevNodeID")]
    previous_node_id: &'a str,
    #[serde(rename = "Delay")]
    delay: i64,
}

impl<'a> RescheduleTracker<'a> {
    /// `None` for an allocation that replaces none.
    fn of(alloc: &'a v1::Allocation) -> Option<Self> {
        let event = |event: &'a v1::RescheduleEvent| RescheduleEvent {
            time: event.time_ns,
            previous_alloc_id: &event.previous_alloc_id,
            previous_node_id: &event.previous_node_id,
            delay: nanoseconds(event.delay.as_ref()),
        };
        let events: Vec<_> = alloc.reschedules.iter().map(event).collect();
        (!events.is_empty()).then_some(Self { events })
    }
}
