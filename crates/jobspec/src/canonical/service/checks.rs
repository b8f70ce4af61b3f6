//! The check blocks of a service.

use std::collections::BTreeMap;
use std::time::Duration;

use model::service::{
    AddressMode, CheckRestart, CheckType, InitialStatus, Provider, Service, ServiceCheck,
};

use super::rules::{self, Context, on_update, port_problem};
use crate::canonical::environment;
use crate::canonical::validation::{Path, Validation};

/// Source: Nomad's least interval and timeout.
const LEAST: Duration = Duration::from_secs(1);
/// Source: Nomad's default.
const DEFAULT_GRACE: Duration = Duration::from_secs(1);
/// Checks of one service: each is a connection per interval.
const MAX_CHECKS: usize = 32;
/// Source: Nomad's limit.
const MAX_NOTES_BYTES: usize = 255;
/// The methods of RFC 9110 and PATCH.
const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

pub(super) fn checks(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Service,
    service: &Service,
    context: &Context<'_>,
) -> Vec<ServiceCheck> {
    if spec.checks.len() > MAX_CHECKS {
        let message = format!(
            "has {} blocks, more than {MAX_CHECKS}: remove some",
            spec.checks.len()
        );
        check.error(path.field("check"), message);
        return Vec::new();
    }
    let inherited = spec.check_restart.as_ref();
    let mut checks = Vec::with_capacity(spec.checks.len());
    for (position, spec) in spec.checks.iter().enumerate() {
        let path = path.at("check", position);
        let restart = restart(check, &path, spec.check_restart.as_ref().or(inherited));
        let found = one(check, &path, spec, service, context);
        checks.push(ServiceCheck {
            check_restart: restart,
            ..found
        });
    }
    checks
}

fn one(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Check,
    service: &Service,
    context: &Context<'_>,
) -> ServiceCheck {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let check_type = check_type(check, path, spec.r#type.as_deref());
    refuse(check, path, spec);
    let default_name = || format!("service: {:?} check", service.name);
    let name = spec.name.clone().filter(|name| !name.is_empty());
    let found = ServiceCheck {
        name: name.unwrap_or_else(default_name),
        check_type,
        port: text(&spec.port),
        address_mode: address_mode(check, path, spec, context),
        task: text(&spec.task),
        command: text(&spec.command),
        args: spec.args.clone(),
        interval: time(check, path, "interval", spec.interval.as_ref()),
        timeout: time(check, path, "timeout", spec.timeout.as_ref()),
        path: text(&spec.path),
        protocol: protocol(check, path, spec.protocol.as_deref()),
        method: method(check, path, spec.method.as_deref()),
        header: header(check, path, spec),
        body: text(&spec.body),
        tls_server_name: text(&spec.tls_server_name),
        tls_skip_verify: spec.tls_skip_verify.unwrap_or(false),
        grpc_service: text(&spec.grpc_service),
        grpc_use_tls: spec.grpc_use_tls.unwrap_or(false),
        initial_status: initial_status(check, path, spec.initial_status.as_deref()),
        success_before_passing: check.number(
            path.field("success_before_passing"),
            spec.success_before_passing,
            0,
        ),
        failures_before_critical: check.number(
            path.field("failures_before_critical"),
            spec.failures_before_critical,
            0,
        ),
        failures_before_warning: match service.provider {
            Provider::Consul => check.number(
                path.field("failures_before_warning"),
                spec.failures_before_warning,
                0,
            ),
            Provider::Kafila => 0,
        },
        notes: notes(check, path, spec, service.provider),
        on_update: on_update(check, path, spec.on_update.as_deref(), service.on_update),
        check_restart: None,
    };
    if found.check_type == CheckType::Script {
        script(check, path, &found, service, context);
    } else {
        target(check, path, &found, service, context);
    }
    found
}

/// Reads the notes, which only Consul shows.
fn notes(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Check,
    provider: Provider,
) -> String {
    let notes = spec.notes.clone().unwrap_or_default();
    if provider != Provider::Consul {
        return String::new();
    }
    if notes.len() > MAX_NOTES_BYTES {
        let message = format!(
            "has {} bytes, more than {MAX_NOTES_BYTES}: shorten it",
            notes.len()
        );
        check.error(path.field("notes"), message);
    }
    notes
}

fn check_type(check: &mut Validation, path: &Path, text: Option<&str>) -> CheckType {
    let choices = CheckType::ALL.map(|it| (it.as_str(), it));
    let text = text.unwrap_or_default();
    let field = path.field("type");
    check.choice(field, Some(text), &choices, CheckType::Tcp, |given| {
        let types = CheckType::ALL.map(CheckType::as_str).join(", ");
        format!("invalid check type ({given:?}), must be one of {types}")
    })
}

/// Refuses settings that this version does not carry out.
fn refuse(check: &mut Validation, path: &Path, spec: &job_fields::Check) {
    if spec.expose == Some(true) {
        let message = "expose is not supported by this version of Kafila: remove it, Consul Connect is not used";
        check.error(path.field("expose"), message);
    }
}

/// "auto" is the same as none: a check has the mode of its service.
fn address_mode(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Check,
    context: &Context<'_>,
) -> Option<AddressMode> {
    let mode = spec.address_mode.as_deref().unwrap_or_default();
    let mode = if mode == AddressMode::Auto.as_str() {
        ""
    } else {
        mode
    };
    let choices = AddressMode::ALL.into_iter();
    let choices: Vec<_> = choices.filter(|it| *it != AddressMode::Auto).collect();
    rules::address_mode(check, path, mode, &choices, context)
}

fn time(
    check: &mut Validation,
    path: &Path,
    name: &str,
    value: Option<&prost_types::Duration>,
) -> Duration {
    let field = path.field(name);
    if value.is_none() {
        let capital = if name == "interval" {
            "Interval"
        } else {
            "Timeout"
        };
        let message = format!(
            "missing required value {name}. {capital} cannot be less than 1s: write {name} = \"10s\""
        );
        check.error(field, message);
        return LEAST;
    }
    let time = check.duration(field.clone(), value, LEAST);
    if time < LEAST {
        let message = format!("{name} cannot be less than 1s: write {name} = \"1s\" or longer");
        check.error(field, message);
        return LEAST;
    }
    time
}

fn protocol(check: &mut Validation, path: &Path, protocol: Option<&str>) -> String {
    let protocol = protocol.unwrap_or_default();
    if !matches!(protocol, "" | "http" | "https") {
        let message = format!("unknown protocol {protocol:?}: use \"http\" or \"https\"");
        check.error(path.field("protocol"), message);
    }
    protocol.to_owned()
}

fn method(check: &mut Validation, path: &Path, method: Option<&str>) -> String {
    let method = method.unwrap_or_default();
    if !method.is_empty() && !METHODS.contains(&method) {
        let message = format!(
            "unknown method {method:?}: use one of {}",
            METHODS.join(", ")
        );
        check.error(path.field("method"), message);
    }
    method.to_owned()
}

/// Reads the headers; a single text counts as a list of one.
fn header(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Check,
) -> BTreeMap<String, Vec<String>> {
    let field = path.field("header");
    let mut headers = BTreeMap::new();
    for (name, value) in check.object(field.clone(), spec.header.as_ref()) {
        let values = match &value {
            serde_json::Value::String(text) => Some(vec![text.clone()]),
            serde_json::Value::Array(items) => {
                let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
                texts.collect()
            }
            _ => None,
        };
        let Some(values) = values else {
            let message =
                format!("header {name:?} must be a list of strings, as in {name} = [\"…\"]");
            check.error(&field, message);
            continue;
        };
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) {
            check.error(
                &field,
                format!("{name:?} is not a valid name of a header: use letters and dashes"),
            );
        }
        if values
            .iter()
            .any(|value| value.contains(['\r', '\n', '\0']))
        {
            check.error(
                &field,
                format!("header {name:?} contains a line break: remove it"),
            );
        }
        headers.insert(name, values);
    }
    headers
}

fn initial_status(
    check: &mut Validation,
    path: &Path,
    text: Option<&str>,
) -> Option<InitialStatus> {
    let text = text.filter(|text| !text.is_empty())?;
    let choices = InitialStatus::ALL.map(|it| (it.as_str(), it));
    let field = path.field("initial_status");
    let found = check.choice(
        field,
        Some(text),
        &choices,
        InitialStatus::Critical,
        |given| format!("invalid initial check state {given:?}: use passing, warning or critical"),
    );
    Some(found)
}

/// Checks the command of a script, and that it has a task to run in.
fn script(
    check: &mut Validation,
    path: &Path,
    found: &ServiceCheck,
    service: &Service,
    context: &Context<'_>,
) {
    if found.command.is_empty() {
        let message = "script type must have a script path: write command = \"/usr/local/bin/check\" or another one";
        check.error(path.field("command"), message);
    }
    if context.task.is_none() && found.task.is_empty() && service.task.is_empty() {
        let message = "a script check of a group's service must specify its task: write task, the name of the \
                       task that it runs in";
        check.error(path.field("task"), message);
    }
}

/// Checks the address of a check: a port, and for HTTP a path.
fn target(
    check: &mut Validation,
    path: &Path,
    found: &ServiceCheck,
    service: &Service,
    context: &Context<'_>,
) {
    if found.port.is_empty() && service.port.is_empty() {
        let message = format!(
            "check requires a port but neither check nor service {:?} have a port: write port in one of them",
            service.name
        );
        check.error(path.field("port"), message);
    }
    if let Some(problem) = port_problem(&found.port, &service.name, context) {
        check.error(path.field("port"), problem);
    }
    if let Some(problem) = environment::unfit(&found.path) {
        check.error(path.field("path"), problem);
    }
    if found.check_type != CheckType::Http {
        return;
    }
    if found.path.is_empty() {
        let message = "http type must have http path: write path = \"/health\" or another one";
        check.error(path.field("path"), message);
    } else if found.path.contains("://") || found.path.starts_with("//") {
        let message = format!(
            "path {:?} has a host: write the path alone, as in \"/health\"",
            found.path
        );
        check.error(path.field("path"), message);
    }
}

fn restart(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::CheckRestart>,
) -> Option<CheckRestart> {
    let spec = spec?;
    let path = path.block("check_restart");
    Some(CheckRestart {
        limit: check.number(path.field("limit"), spec.limit, 0),
        grace: check.duration(path.field("grace"), spec.grace.as_ref(), DEFAULT_GRACE),
        ignore_warnings: spec.ignore_warnings.unwrap_or(false),
    })
}
