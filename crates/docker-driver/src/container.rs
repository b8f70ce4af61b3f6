//! Names, labels and states of containers.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum as Status};
use model::glob::glob_matches;
use model::{AllocId, ExitResult};
use task_drivers::{DriverAddress, TaskConfig, TaskId};

use crate::options::Options;
use crate::settings::{EngineKind, Settings};

/// The label by which log shippers and scripts for Nomad find an allocation.
const ALLOC: &str = "com.hashicorp.nomad.alloc_id";
const EXTRA: &str = "com.hashicorp.nomad.";
/// The node that owns the container.
pub(crate) const NODE: &str = "io.kafila.node_id";
const TASK: &str = "io.kafila.task";
const ATTEMPT: &str = "io.kafila.attempt";

pub(crate) fn labels(
    task: &TaskConfig,
    options: &Options,
    settings: &Settings,
) -> HashMap<String, String> {
    let names = &task.names;
    let mut labels: HashMap<String, String> = options.labels.clone().into_iter().collect();
    let facts = [
        ("job_id", &names.job_id),
        ("job_name", &names.job_name),
        ("task_group_name", &names.group),
        ("task_name", &task.id.task),
        ("namespace", &names.namespace),
        ("node_id", &settings.node_id),
        ("node_name", &settings.node_name),
    ];
    let patterns = || {
        settings
            .config
            .extra_labels
            .iter()
            .chain(&options.extra_labels)
    };
    for (fact, value) in facts {
        if patterns().any(|pattern| glob_matches(pattern, fact)) {
            labels.insert(format!("{EXTRA}{fact}"), value.clone());
        }
    }
    for (label, value) in [
        (ALLOC, task.id.alloc_id.to_string()),
        (NODE, settings.node_id.clone()),
        (TASK, task.id.task.clone()),
        (ATTEMPT, task.id.attempt.to_string()),
    ] {
        labels.insert(label.to_owned(), value);
    }
    labels
}

/// Returns the labels of an allocation's pause container.
pub(crate) fn network_labels(alloc_id: AllocId, node_id: &str) -> HashMap<String, String> {
    let labels = [(ALLOC, alloc_id.to_string()), (NODE, node_id.to_owned())];
    labels
        .map(|(label, value)| (label.to_owned(), value))
        .into()
}

/// Reads the attempt from a container's labels; `None`: it is none of a node's.
pub(crate) fn task_id(labels: &HashMap<String, String>) -> Option<TaskId> {
    Some(TaskId {
        alloc_id: labels.get(ALLOC)?.parse().ok()?,
        task: labels.get(TASK)?.clone(),
        attempt: labels.get(ATTEMPT)?.parse().ok()?,
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Never started.
    Created,
    Running,
    Ended(ExitResult),
}

/// An existing container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) id: String,
    /// `None`: made by another program.
    pub(crate) task_id: Option<TaskId>,
    pub(crate) state: State,
    /// The image's stop signal; empty: none.
    pub(crate) stop_signal: String,
    /// Id of its process; 0: none.
    pub(crate) pid: i32,
    /// `None`: it has none of its own, or does not run.
    pub(crate) address: Option<DriverAddress>,
}

pub(crate) fn found(inspected: ContainerInspectResponse, kind: EngineKind) -> Found {
    let state = state(&inspected, kind);
    let address = address(&inspected, kind);
    let pid = inspected.state.as_ref().and_then(|state| state.pid);
    let config = inspected.config.unwrap_or_default();
    Found {
        id: inspected.id.unwrap_or_default(),
        task_id: task_id(&config.labels.unwrap_or_default()),
        state,
        stop_signal: config.stop_signal.unwrap_or_default(),
        pid: pid
            .and_then(|pid| i32::try_from(pid).ok())
            .unwrap_or_default(),
        address,
    }
}

/// Returns the address in the first network by name that has one. Source: Nomad's public behaviour, which
/// advertises addresses of all networks but the engine's own.
fn address(inspected: &ContainerInspectResponse, kind: EngineKind) -> Option<DriverAddress> {
    let settings = inspected.network_settings.as_ref()?;
    let networks: BTreeMap<_, _> = settings.networks.iter().flatten().collect();
    let (name, host) = networks.into_iter().find_map(|(name, endpoint)| {
        let host = endpoint.ip_address.clone();
        Some((name, host.filter(|host| !host.is_empty())?))
    })?;
    let mut ports = BTreeMap::new();
    for (inside, bindings) in settings.ports.iter().flatten() {
        let number = inside.split('/').next().unwrap_or_default();
        let Ok(number) = number.parse::<u16>() else {
            continue;
        };
        let bindings = bindings.iter().flatten();
        let outside = bindings.filter_map(|binding| binding.host_port.as_deref()?.parse().ok());
        ports.extend(outside.map(|outside: u16| (outside, number)));
    }
    Some(DriverAddress {
        host,
        is_advertised: name != kind.own_network(),
        ports,
    })
}

fn state(inspected: &ContainerInspectResponse, kind: EngineKind) -> State {
    let state = inspected.state.clone().unwrap_or_default();
    match state.status {
        Some(Status::CREATED) if state.exit_code.unwrap_or(0) == 0 => return State::Created,
        Some(Status::CREATED | Status::EXITED | Status::DEAD | Status::REMOVING) => {}
        _ => return State::Running,
    }
    let code = i32::try_from(state.exit_code.unwrap_or(-1)).unwrap_or(-1);
    let error = state.error.unwrap_or_default();
    let title = kind.title();
    let message = match (code, error.is_empty()) {
        (_, false) => format!("{title}: {error}"),
        (0, true) => String::new(),
        (code, true) => format!("{title} container exited with non-zero exit code: {code}"),
    };
    State::Ended(ExitResult {
        code,
        signal: 0,
        oom_killed: state.oom_killed.unwrap_or(false),
        message,
    })
}

#[cfg(test)]
mod tests {
    use bollard::models::{ContainerState, EndpointSettings, NetworkSettings, PortBinding};

    use super::*;

    fn id(task: &str) -> TaskId {
        TaskId {
            alloc_id: AllocId::from_random(7),
            task: task.to_owned(),
            attempt: 1,
        }
    }

    #[test]
    fn a_container_is_found_again_by_its_labels() {
        let mut task = TaskConfig::new(id("web"));
        task.names.job_id = "shop".to_owned();
        let mut settings = Settings::new("/".into(), "node-1".to_owned());
        settings.config.extra_labels = vec!["job_*".to_owned()];
        let labels = labels(&task, &Options::default(), &settings);
        assert_eq!(task_id(&labels), Some(task.id.clone()));
        assert_eq!(labels[NODE], "node-1");
        assert_eq!(labels["com.hashicorp.nomad.job_id"], "shop");
        assert!(!labels.contains_key("com.hashicorp.nomad.namespace"));
        assert_eq!(task_id(&HashMap::new()), None);
    }

    #[test]
    fn addresses_are_those_of_networks_with_one_and_of_the_engines_own_not_advertised() {
        let of = |networks: &[(&str, &str)]| {
            let networks = networks.iter().map(|(name, host)| {
                let endpoint = EndpointSettings {
                    ip_address: Some((*host).to_owned()),
                    ..EndpointSettings::default()
                };
                ((*name).to_owned(), endpoint)
            });
            let binding = PortBinding {
                host_ip: Some("10.0.0.7".to_owned()),
                host_port: Some("25000".to_owned()),
            };
            let ports = [
                ("80/tcp".to_owned(), Some(vec![binding])),
                ("90/udp".to_owned(), None),
            ];
            let inspected = ContainerInspectResponse {
                network_settings: Some(NetworkSettings {
                    networks: Some(networks.collect()),
                    ports: Some(ports.into()),
                    ..NetworkSettings::default()
                }),
                ..ContainerInspectResponse::default()
            };
            address(&inspected, EngineKind::Docker)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("host", "")]), None);
        let want = |host: &str, is_advertised| {
            Some(DriverAddress {
                host: host.to_owned(),
                is_advertised,
                ports: [(25_000, 80)].into(),
            })
        };
        assert_eq!(of(&[("bridge", "172.17.0.2")]), want("172.17.0.2", false));
        assert_eq!(of(&[("weave", "10.32.0.9")]), want("10.32.0.9", true));
        assert_eq!(
            of(&[("bridge", ""), ("weave", "10.32.0.9")]),
            want("10.32.0.9", true)
        );
    }

    #[test]
    fn states_tell_a_start_from_an_end() {
        let of = |status, exit_code, oom_killed| {
            let inspected = ContainerInspectResponse {
                state: Some(ContainerState {
                    status: Some(status),
                    exit_code: Some(exit_code),
                    oom_killed: Some(oom_killed),
                    ..ContainerState::default()
                }),
                ..ContainerInspectResponse::default()
            };
            state(&inspected, EngineKind::Docker)
        };
        assert_eq!(of(Status::CREATED, 0, false), State::Created);
        for status in [Status::RUNNING, Status::PAUSED, Status::RESTARTING] {
            assert_eq!(of(status, 0, false), State::Running, "{status}");
        }
        assert_eq!(
            of(Status::EXITED, 0, false),
            State::Ended(ExitResult::default())
        );
        let killed = ExitResult {
            code: 137,
            signal: 0,
            oom_killed: true,
            message: "Docker container exited with non-zero exit code: 137".to_owned(),
        };
        assert_eq!(of(Status::EXITED, 137, true), State::Ended(killed));
        // A command that does not exist.
        assert!(matches!(
            of(Status::CREATED, 127, false),
            State::Ended(ExitResult { code: 127, .. })
        ));
    }
}
