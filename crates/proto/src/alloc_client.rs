//! The reported state of an allocation: its status, its tasks' states, its health.

use model::{
    AllocClient, ClientStatus, DeploymentHealth, FieldErrors, NetworkStatus, ServiceHealth,
    ServiceRegistration, TaskEvent, TaskPhase, TaskState,
};

use crate::fields::{
    At as _, Read, each, each_value, id_or_empty, narrow, optional_id, time, word,
};
use crate::v1;

const TASK_PHASES: [TaskPhase; 3] = [TaskPhase::Pending, TaskPhase::Running, TaskPhase::Dead];

impl TryFrom<v1::AllocClient> for AllocClient {
    type Error = FieldErrors;

    fn try_from(wire: v1::AllocClient) -> Result<Self, FieldErrors> {
        read(wire).at("client")
    }
}

fn read(wire: v1::AllocClient) -> Read<AllocClient> {
    Ok(AllocClient {
        status: word(&wire.status, &ClientStatus::ALL, ClientStatus::as_str).at("status")?,
        description: wire.description,
        task_states: each_value(wire.task_states, read_task_state).at("task_states")?,
        health: wire
            .deployment_health
            .map(read_health)
            .transpose()
            .at("deployment_health")?,
        services: each(wire.services, read_service).at("services")?,
        network: wire.network_status.map(|status| Box::new(status.into())),
        report: wire.report_number,
        modify_time: time(wire.modify_time_ns),
    })
}

fn read_service(wire: v1::ReportedService) -> Read<ServiceRegistration> {
    Ok(ServiceRegistration {
        id: wire.id,
        name: wire.name,
        tags: wire.tags,
        canary_tags: wire.canary_tags,
        address: wire.address,
        port: narrow(wire.port, u16::MAX).at("port")?,
        task: wire.task,
        health: match wire.health.as_str() {
            "" => ServiceHealth::Passing,
            text => word(text, &ServiceHealth::ALL, ServiceHealth::as_str).at("health")?,
        },
    })
}

impl From<&ServiceRegistration> for v1::ReportedService {
    fn from(registration: &ServiceRegistration) -> Self {
        Self {
            id: registration.id.clone(),
            name: registration.name.clone(),
            tags: registration.tags.clone(),
            canary_tags: registration.canary_tags.clone(),
            address: registration.address.clone(),
            port: u32::from(registration.port),
            task: registration.task.clone(),
            health: registration.health.as_str().to_owned(),
        }
    }
}

fn read_health(wire: v1::DeploymentHealth) -> Read<DeploymentHealth> {
    Ok(DeploymentHealth {
        healthy: wire.healthy,
        time: time(wire.time_ns),
        deployment_id: optional_id(&wire.deployment_id).at("deployment_id")?,
    })
}

impl TryFrom<v1::TaskState> for TaskState {
    type Error = FieldErrors;

    fn try_from(wire: v1::TaskState) -> Result<Self, FieldErrors> {
        read_task_state(wire).at("task_state")
    }
}

fn read_task_state(wire: v1::TaskState) -> Read<TaskState> {
    Ok(TaskState {
        phase: word(&wire.state, &TASK_PHASES, TaskPhase::as_str).at("state")?,
        failed: wire.failed,
        restarts: wire.restarts,
        last_restart: time(wire.last_restart_at_ns),
        started_at: time(wire.started_at_ns),
        finished_at: time(wire.finished_at_ns),
        events: wire.events.into_iter().map(TaskEvent::from).collect(),
    })
}

impl From<v1::TaskEvent> for TaskEvent {
    fn from(wire: v1::TaskEvent) -> Self {
        Self {
            event_type: wire.r#type,
            time: time(wire.time_ns),
            message: wire.display_message,
            details: wire.details.into_iter().collect(),
        }
    }
}

impl From<&AllocClient> for v1::AllocClient {
    fn from(client: &AllocClient) -> Self {
        Self {
            status: client.status.as_str().to_owned(),
            description: client.description.clone(),
            task_states: client
                .task_states
                .iter()
                .map(|(task, state)| (task.clone(), state.into()))
                .collect(),
            deployment_health: client.health.map(Into::into),
            modify_time_ns: client.modify_time.0,
            report_number: client.report,
            services: client.services.iter().map(Into::into).collect(),
            network_status: client.network.as_deref().map(Into::into),
        }
    }
}

impl From<v1::NetworkStatus> for NetworkStatus {
    fn from(wire: v1::NetworkStatus) -> Self {
        Self {
            interface: wire.interface_name,
            address: wire.address,
            address_ipv6: wire.address_ipv6,
        }
    }
}

impl From<&NetworkStatus> for v1::NetworkStatus {
    fn from(status: &NetworkStatus) -> Self {
        Self {
            interface_name: status.interface.clone(),
            address: status.address.clone(),
            address_ipv6: status.address_ipv6.clone(),
        }
    }
}

impl From<DeploymentHealth> for v1::DeploymentHealth {
    fn from(health: DeploymentHealth) -> Self {
        Self {
            healthy: health.healthy,
            time_ns: health.time.0,
            deployment_id: id_or_empty(health.deployment_id),
        }
    }
}

impl From<&TaskState> for v1::TaskState {
    fn from(state: &TaskState) -> Self {
        Self {
            state: state.phase.as_str().to_owned(),
            failed: state.failed,
            restarts: state.restarts,
            last_restart_at_ns: state.last_restart.0,
            started_at_ns: state.started_at.0,
            finished_at_ns: state.finished_at.0,
            events: state.events.iter().map(Into::into).collect(),
        }
    }
}

impl From<&TaskEvent> for v1::TaskEvent {
    fn from(event: &TaskEvent) -> Self {
        Self {
            r#type: event.event_type.clone(),
            time_ns: event.time.0,
            display_message: event.message.clone(),
            details: event.details.clone().into_iter().collect(),
        }
    }
}
