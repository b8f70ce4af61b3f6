//! Rules that services and their checks share: ports, address modes, effects on deployments.

use std::collections::BTreeSet;

use model::service::{AddressMode, OnUpdate};

use crate::canonical::validation::{Path, Validation};

/// The context of a service: the names of its job, group and task, and the labels of the ports that it can name.
pub(in crate::canonical) struct Context<'a> {
    pub(in crate::canonical) job: &'a str,
    pub(in crate::canonical) group: &'a str,
    /// `None`: the service is the group's.
    pub(in crate::canonical) task: Option<&'a str>,
    pub(in crate::canonical) ports: &'a BTreeSet<&'a str>,
}

/// Returns the problem of a port: it is neither a label of the group's network nor a number.
pub(super) fn port_problem(port: &str, service: &str, context: &Context<'_>) -> Option<String> {
    if port.is_empty() || port.contains("${") || context.ports.contains(port) {
        return None;
    }
    if port.chars().all(|c| c.is_ascii_digit()) {
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        return (!is_port).then(|| format!("port {port} must be between 1 and 65535"));
    }
    Some(format!(
        "port label {port:?} referenced by services {service} does not exist: write port {port:?} {{ }} in the \
         network block of group {:?}",
        context.group
    ))
}

/// Reads an address mode, which is one of `choices`; `None`: the text is empty, or wrong.
pub(super) fn address_mode(
    check: &mut Validation,
    path: &Path,
    mode: &str,
    choices: &[AddressMode],
    context: &Context<'_>,
) -> Option<AddressMode> {
    if mode.is_empty() {
        return None;
    }
    let field = path.field("address_mode");
    let found = choices.iter().find(|known| known.as_str() == mode);
    match found {
        None => {
            let quoted: Vec<String> = choices
                .iter()
                .map(|it| format!("{:?}", it.as_str()))
                .collect();
            let known = suggest::list(quoted.iter().map(String::as_str), "or");
            check.error(field, format!("unknown address_mode {mode:?}: use {known}"));
        }
        Some(AddressMode::Driver) if context.task.is_none() => {
            let message = "address_mode \"driver\" is for services of a task, whose driver gives it an address: \
                           move the service into the task";
            check.error(field, message);
        }
        Some(_) => {}
    }
    found.copied()
}

pub(super) fn on_update(
    check: &mut Validation,
    path: &Path,
    text: Option<&str>,
    default: OnUpdate,
) -> OnUpdate {
    let choices = OnUpdate::ALL.map(|it| (it.as_str(), it));
    let text = text.filter(|text| !text.is_empty());
    check.choice(path.field("on_update"), text, &choices, default, |given| {
        format!("unknown on_update {given:?}: use require_healthy, ignore_warnings or ignore")
    })
}
