//! The service blocks of groups and tasks.

mod checks;
mod providers;
mod rules;

use std::collections::BTreeSet;

use model::job::Task;
use model::service::{AddressMode, CheckType, OnUpdate, Provider, Service};
use model::{Constraint, Operator};

pub(super) use self::providers::check_providers;
pub(super) use self::rules::Context;
use self::rules::{on_update, port_problem};
use super::validation::{Path, Validation};
use super::{driver_config, environment};

/// Source: Nomad's limit, the length of a label of a host name.
const MAX_NAME_BYTES: usize = 63;
/// A service's tags are stored with each registration: more than any tool reads, few enough for a
/// report of all services of an allocation.
const MAX_TAGS: usize = 256;
const MAX_TAG_BYTES: usize = 1_024;
/// Services of one group or task, more than anyone writes by hand.
const MAX_SERVICES: usize = 64;

pub(super) fn services(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::Service],
    context: &Context<'_>,
) -> Vec<Service> {
    if specs.len() > MAX_SERVICES {
        let message = format!(
            "has {} blocks, more than {MAX_SERVICES}: remove some",
            specs.len()
        );
        check.error(path.field("service"), message);
        return Vec::new();
    }
    let mut known = BTreeSet::new();
    let mut services = Vec::with_capacity(specs.len());
    for (position, spec) in specs.iter().enumerate() {
        let path = path.at("service", position);
        let service = service(check, &path, spec, context);
        if !known.insert((service.name.clone(), service.port.clone())) {
            let message = format!(
                "Service {:?} is defined twice with the port {:?}: rename one of them",
                service.name, service.port
            );
            check.error(path.field("name"), message);
        }
        services.push(service);
    }
    services
}

fn service(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Service,
    context: &Context<'_>,
) -> Service {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let provider = providers::provider(check, path, spec);
    let name = name(check, path, spec.name.as_deref(), context);
    let port = text(&spec.port);
    self::port(check, path, &port, &name, context);
    let task = text(&spec.task);
    if let Some(own) = context.task
        && !task.is_empty()
        && task != own
    {
        let message = format!(
            "a service of task {own:?} cannot name task {task:?}: remove task, or move the service to the group"
        );
        check.error(path.field("task"), message);
    }
    let on_update = on_update(check, path, spec.on_update.as_deref(), OnUpdate::default());
    let service = Service {
        address_mode: address_mode(check, path, spec, context),
        address: text(&spec.address),
        tags: tags(check, path, "tags", &spec.tags),
        canary_tags: tags(check, path, "canary_tags", &spec.canary_tags),
        meta: environment::variables(check, path, "meta", &spec.meta),
        on_update,
        checks: Vec::new(),
        name,
        task,
        port,
        ..providers::consul_parts(check, path, spec, provider)
    };
    let checks = checks::checks(check, path, spec, &service, context);
    Service { checks, ..service }
}

fn name(check: &mut Validation, path: &Path, name: Option<&str>, context: &Context<'_>) -> String {
    let base = match context.task {
        Some(task) => format!("{}-{}-{task}", context.job, context.group),
        None => format!("{}-{}", context.job, context.group),
    };
    let name = match name.filter(|name| !name.is_empty()) {
        Some(name) => name
            .replace("${JOB}", context.job)
            .replace("${TASKGROUP}", context.group)
            .replace("${TASK}", context.task.unwrap_or_default())
            .replace("${BASE}", &base),
        None => base,
    };
    if !is_name(&without_references(&name)) {
        let message = format!(
            "Service name must be valid per RFC 1123 and can contain only alphanumeric characters or dashes and must \
             be no longer than {MAX_NAME_BYTES} characters: {name:?}, write a name such as \"web-api\""
        );
        check.error(path.field("name"), message);
    }
    name
}

/// Tells whether registrations may have this name.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.chars().all(is_plain)
        && name.starts_with(is_edge)
        && name.ends_with(is_edge)
}

/// Replaces each `${…}`, whose value only the node knows, by a letter.
fn without_references(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("${") {
        let Some(length) = rest[begin..].find('}') else {
            break;
        };
        plain.push_str(&rest[..begin]);
        plain.push('a');
        rest = &rest[begin + length + 1..];
    }
    plain + rest
}

fn port(check: &mut Validation, path: &Path, port: &str, service: &str, context: &Context<'_>) {
    if let Some(problem) = port_problem(port, service, context) {
        check.error(path.field("port"), problem);
    }
}

fn address_mode(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Service,
    context: &Context<'_>,
) -> AddressMode {
    let mode = spec.address_mode.as_deref().unwrap_or_default();
    let found = rules::address_mode(check, path, mode, &AddressMode::ALL, context);
    let found = found.unwrap_or_default();
    if spec
        .address
        .as_deref()
        .is_some_and(|address| !address.is_empty())
        && found != AddressMode::Auto
    {
        let message = format!(
            "address_mode {mode:?} excludes address: write address_mode = \"auto\", or remove address"
        );
        check.error(path.field("address_mode"), message);
    }
    found
}

fn tags(check: &mut Validation, path: &Path, name: &str, tags: &[String]) -> Vec<String> {
    let problem = if tags.len() > MAX_TAGS {
        Some(format!(
            "has {} tags, more than {MAX_TAGS}: remove some",
            tags.len()
        ))
    } else {
        let long = tags.iter().find(|tag| tag.len() > MAX_TAG_BYTES);
        long.map(|tag| {
            let bytes = tag.len();
            format!("a tag has {bytes} bytes, more than {MAX_TAG_BYTES}: shorten it")
        })
    };
    if let Some(problem) = problem {
        check.error(path.field(name), problem);
        return Vec::new();
    }
    tags.to_vec()
}

/// Checks that the tasks which a group's services name exist.
pub(super) fn check_tasks(
    check: &mut Validation,
    path: &Path,
    services: &[Service],
    tasks: &[Task],
) {
    for (position, service) in services.iter().enumerate() {
        let path = path.at("service", position);
        let named = service.checks.iter().map(|check| check.task.as_str());
        let named: BTreeSet<&str> = named.chain([service.task.as_str()]).collect();
        for task in named.into_iter().filter(|task| !task.is_empty()) {
            if tasks.iter().all(|known| known.name != task) {
                let message = format!("the group has no task {task:?}: name one of its tasks");
                check.error(path.field("task"), message);
            }
        }
    }
}

/// Refuses scripts in tasks whose driver runs no commands. `path` is the group's.
pub(super) fn check_scripts(
    check: &mut Validation,
    path: &Path,
    services: &[Service],
    tasks: &[Task],
) {
    scripts_of(check, path, services, None, tasks);
    for (position, task) in tasks.iter().enumerate() {
        let path = path.labelled("task", Some(&task.name), position);
        scripts_of(check, &path, &task.services, Some(&task.name), tasks);
    }
}

fn scripts_of(
    check: &mut Validation,
    path: &Path,
    services: &[Service],
    owner: Option<&str>,
    tasks: &[Task],
) {
    for (position, service) in services.iter().enumerate() {
        let path = path.at("service", position);
        let checks = service.checks.iter().enumerate();
        for (number, found) in checks.filter(|(_, it)| it.check_type == CheckType::Script) {
            let named = [&found.task, &service.task].map(String::as_str);
            let named = named.into_iter().find(|task| !task.is_empty());
            let task = owner.or(named);
            let task = tasks.iter().find(|it| Some(it.name.as_str()) == task);
            if let Some(task) = task.filter(|it| !driver_config::runs_commands(&it.driver)) {
                let message = format!(
                    "the driver {:?} of task {:?} runs no commands in its tasks: use an http, tcp or grpc check",
                    task.driver, task.name
                );
                check.error(path.at("check", number).field("type"), message);
            }
        }
    }
}

/// Adds the constraints that a node registers services of their providers, unless they are there.
///
/// Source: Nomad's implied constraints.
pub(super) fn imply(constraints: &mut Vec<Constraint>, services: &[Service], tasks: &[Task]) {
    let of_tasks = tasks.iter().flat_map(|task| &task.services);
    let providers: Vec<Provider> = services
        .iter()
        .chain(of_tasks)
        .map(|service| service.provider)
        .collect();
    for (provider, left, operator, right) in [
        (
            Provider::Kafila,
            "${attr.nomad.service_discovery}",
            Operator::Equal,
            "true",
        ),
        (
            Provider::Consul,
            "${attr.consul.version}",
            Operator::Semver,
            ">= 1.8.0",
        ),
    ] {
        let implied = Constraint {
            left: left.to_owned(),
            operator,
            right: right.to_owned(),
        };
        if providers.contains(&provider) && !constraints.contains(&implied) {
            constraints.push(implied);
        }
    }
}

/// Warns of services without a provider, of those that are never registered, and of settings without effect.
pub(super) fn warn(check: &mut Validation, job: &job_fields::Job) {
    warn_of_drivers(check, job);
    let groups = job.task_groups.iter();
    let services = groups.flat_map(|group| {
        let of_tasks = group.tasks.iter().flat_map(|task| &task.services);
        group.services.iter().chain(of_tasks)
    });
    let services: Vec<&job_fields::Service> = services.collect();
    let is_open = |service: &&&job_fields::Service| {
        let provider = service.provider.as_deref().unwrap_or_default();
        provider.is_empty()
    };
    let open = services.iter().filter(is_open).count();
    if open > 0 {
        let noun = if open == 1 {
            "service has"
        } else {
            "services have"
        };
        check.warn(format!(
            "{open} {noun} no provider: Kafila keeps them itself. Write provider = \"nomad\" to say so, or \
             provider = \"consul\" to register them in the Consul of their nodes"
        ));
    }
    providers::warn(check, &services);
}

/// Warns of services at the address of a driver that gives its tasks none.
fn warn_of_drivers(check: &mut Validation, job: &job_fields::Job) {
    for group in &job.task_groups {
        let mut modes = group.networks.iter().map(|it| it.mode.as_deref());
        let has_network = modes.any(|mode| !matches!(mode.unwrap_or("host"), "" | "host"));
        for task in &group.tasks {
            let wants =
                |service: &&job_fields::Service| service.address_mode.as_deref() == Some("driver");
            let driver = task.driver.as_deref().unwrap_or_default();
            let Some(service) = task.services.iter().find(wants) else {
                continue;
            };
            let why = if has_network {
                "the tasks of its group share an address: write address_mode = \"alloc\"".to_owned()
            } else if matches!(driver, "docker" | "podman") {
                continue;
            } else {
                format!("the driver {driver:?} gives its tasks none: remove address_mode")
            };
            check.warn(format!(
                "Service {:?} of task {:?} is not registered at an address of its driver, because {why}",
                service.name.as_deref().unwrap_or_default(),
                task.name.as_deref().unwrap_or_default(),
            ));
        }
    }
}
