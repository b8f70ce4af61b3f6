//! The template blocks of a task.

use std::collections::BTreeSet;
use std::time::Duration;

use ::template::source::VariablePath;
use duration::show;
use model::AllocPath;
use model::job::Job;
use model::template::{ChangeMode, ChangeScript, Template, TemplateWait};
use model::variable::variable_paths;

use super::validation::{Path, Validation};
use super::{driver_config, environment, signal};

/// Source: Nomad's defaults.
const DEFAULT_SPLAY: Duration = Duration::from_secs(5);
const DEFAULT_SCRIPT_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_PERMS: &str = "0644";
const DEFAULT_SIGNAL: &str = "SIGHUP";

pub(super) fn templates(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::Template],
) -> Vec<Template> {
    let mut templates = Vec::new();
    let mut destinations = BTreeSet::new();
    for (position, spec) in specs.iter().enumerate() {
        let path = path.at("template", position);
        let template = template(check, &path, spec);
        let destination = &template.destination;
        if !destination.is_empty() && !destinations.insert(destination.clone()) {
            let message =
                format!("two templates write {destination:?}: give each a destination of its own");
            check.error(path.field("destination"), message);
        }
        templates.push(template);
    }
    templates
}

fn template(check: &mut Validation, path: &Path, spec: &job_fields::Template) -> Template {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let or = |value: &Option<String>, default: &str| {
        let given = value.as_deref().filter(|value| !value.is_empty());
        given.unwrap_or(default).to_owned()
    };
    let (change_mode, change_signal) = change(check, path, spec);
    let template = Template {
        source: text(&spec.source),
        destination: text(&spec.destination),
        data: text(&spec.data),
        change_mode,
        change_signal,
        change_script: change_script(check, path, spec.change_script.as_ref(), change_mode),
        once: spec.once.unwrap_or(false),
        splay: check
            .signed_duration(
                path.field("splay"),
                spec.splay.as_ref(),
                "Must specify positive splay value: write a duration such as \"5s\"",
            )
            .unwrap_or(DEFAULT_SPLAY),
        perms: perms(check, path, spec.perms.as_deref()),
        uid: owner(check, path, "uid", spec.uid),
        gid: owner(check, path, "gid", spec.gid),
        left_delimiter: or(&spec.left_delimiter, "{{"),
        right_delimiter: or(&spec.right_delimiter, "}}"),
        env: spec.env.unwrap_or(false),
        wait: wait(check, path, spec.wait.as_ref()),
        error_on_missing_key: spec.error_on_missing_key.unwrap_or(false),
    };
    check_files(check, path, &template);
    check_text(check, path, &template);
    template
}

fn change(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Template,
) -> (ChangeMode, String) {
    let modes = ChangeMode::ALL.map(|mode| (mode.as_str(), mode));
    let given = spec.change_mode.as_deref().filter(|mode| !mode.is_empty());
    let mode = check.choice(
        path.field("change_mode"),
        given,
        &modes,
        ChangeMode::Restart,
        |mode| format!("Invalid change mode given: {mode:?}: use restart, signal, script or noop"),
    );
    let mut signal = spec
        .change_signal
        .clone()
        .unwrap_or_default()
        .to_uppercase();
    if mode == ChangeMode::Signal && signal.is_empty() {
        signal = DEFAULT_SIGNAL.to_owned();
    }
    if let Some(problem) = signal::problem(&signal) {
        check.error(path.field("change_signal"), problem);
    }
    if mode == ChangeMode::Signal && spec.env == Some(true) {
        let message = "cannot use signals with env var templates: a process keeps its environment, use restart or noop";
        check.error(path.field("change_mode"), message);
    }
    (mode, signal)
}

fn change_script(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::ChangeScript>,
    mode: ChangeMode,
) -> Option<ChangeScript> {
    let path_of_mode = path.field("change_mode");
    let path = path.block("change_script");
    let Some(spec) = spec else {
        if mode == ChangeMode::Script {
            let message = "must specify change script configuration value when change mode is script: add a change_script block";
            check.error(path_of_mode, message);
        }
        return None;
    };
    let command = spec.command.clone().unwrap_or_default();
    if command.is_empty() {
        let message =
            "must specify script path value when change mode is script: write the program's path";
        check.error(path.field("command"), message);
    }
    Some(ChangeScript {
        command,
        args: spec.args.clone(),
        timeout: check.duration(
            path.field("timeout"),
            spec.timeout.as_ref(),
            DEFAULT_SCRIPT_TIMEOUT,
        ),
        fail_on_error: spec.fail_on_error.unwrap_or(false),
    })
}

fn perms(check: &mut Validation, path: &Path, perms: Option<&str>) -> String {
    let perms = perms
        .filter(|perms| !perms.is_empty())
        .unwrap_or(DEFAULT_PERMS);
    if !u32::from_str_radix(perms, 8).is_ok_and(|mode| mode <= 0o7777) {
        let message = format!("Failed to parse {perms:?} as octal: write a mode such as \"0644\"");
        check.error(path.field("perms"), message);
    }
    perms.to_owned()
}

/// Returns a user or group; the JSON of Nomad writes -1 for the agent's own.
fn owner(check: &mut Validation, path: &Path, name: &str, id: Option<i64>) -> Option<u32> {
    let id = id.filter(|id| *id != -1)?;
    // The largest id means "unchanged" to the kernel.
    match u32::try_from(id) {
        Ok(id) if id < u32::MAX => Some(id),
        _ => {
            let message = format!(
                "must be between 0 and {}; got {id}: write the number of a user or group",
                u32::MAX - 1
            );
            check.error(path.field(name), message);
            None
        }
    }
}

fn wait(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::TemplateWait>,
) -> Option<TemplateWait> {
    let spec = spec?;
    let path = path.block("wait");
    for (name, value) in [("min", &spec.min), ("max", &spec.max)] {
        if value.is_none() {
            check.error(
                path.field(name),
                "missing: wait needs min and max, as in min = \"2s\"",
            );
        }
    }
    let min = check.duration(path.field("min"), spec.min.as_ref(), Duration::ZERO);
    let max = check.duration(path.field("max"), spec.max.as_ref(), Duration::MAX);
    if min > max {
        let message = format!(
            "wait min {} is greater than max {}: lower min, or raise max",
            show(min),
            show(max)
        );
        check.error(path.field("min"), message);
    }
    Some(TemplateWait { min, max })
}

fn check_files(check: &mut Validation, path: &Path, template: &Template) {
    if template.source.is_empty() && template.data.is_empty() {
        let message =
            "Must specify a source path or have an embedded template: write data or source";
        check.error(path, message);
    }
    if !template.source.is_empty() && !template.data.is_empty() {
        let message = "Only source or data may be used: remove one of them";
        check.error(path.field("source"), message);
    }
    if template.destination.is_empty() {
        let message =
            "Must specify a destination for the template: write a path such as \"local/app.conf\"";
        check.error(path.field("destination"), message);
    }
    for (name, file) in [
        ("source", &template.source),
        ("destination", &template.destination),
    ] {
        if file.is_empty() {
            continue;
        }
        if let Some(problem) = environment::unfit(file) {
            check.error(path.field(name), problem);
        } else if !file.contains("${") && AllocPath::file(file).is_none() {
            // A path with a reference is checked on the node, which knows its value.
            let message = format!(
                "{name} escapes allocation directory: {file:?} is not a file below the task's directory or ../alloc, \
                 write a path such as \"local/app.conf\"",
            );
            check.error(path.field(name), message);
        }
    }
}

/// Checks the text's syntax and functions; that of a `source` is known on the node only.
fn check_text(check: &mut Validation, path: &Path, template: &Template) {
    if template.left_delimiter == template.right_delimiter {
        let message = "both delimiters are the same: choose two";
        check.error(path.field("right_delimiter"), message);
        return;
    }
    if let Err(error) = read(template) {
        check.error(
            path.field("data"),
            format!("the template is wrong in its {error}"),
        );
    }
}

fn read(template: &Template) -> Result<::template::Template, ::template::Error> {
    ::template::Template::parse(
        &template.data,
        &template.left_delimiter,
        &template.right_delimiter,
    )
}

/// Functions of Consul that no node looks up.
const REFUSED_OF_CONSUL: [&str; 7] = [
    "caLeaf",
    "caRoots",
    "connect",
    "exportedServices",
    "importedServices",
    "partitions",
    "peerings",
];

/// Functions that look data up in Vault.
const OF_VAULT: [&str; 3] = ["pkiCert", "secret", "secrets"];

/// Functions that look up variables and services, which gateways have.
fn is_of_gateways(function: &str) -> bool {
    function.starts_with("nomad")
}

/// Warns of templates that wait for data which no node has, or which the task may not read.
pub(super) fn warn(check: &mut Validation, job: &Job) {
    for group in &job.task_groups {
        for task in &group.tasks {
            for template in &task.templates {
                let Ok(text) = read(template) else { continue };
                let all = text.look_ups();
                let (of_vault, others): (Vec<&str>, Vec<&str>) = all
                    .iter()
                    .filter(|name| !is_of_gateways(name))
                    .partition(|name| OF_VAULT.contains(name));
                let waits = |calls: &[&str]| {
                    format!(
                        "Task {:?} does not start: its template for {:?} calls {}",
                        task.name,
                        template.destination,
                        calls.join(", "),
                    )
                };
                let (refused, of_consul): (Vec<&str>, Vec<&str>) = others
                    .iter()
                    .partition(|name| REFUSED_OF_CONSUL.contains(name));
                if !refused.is_empty() {
                    check.warn(format!(
                        "{}, which this version of Kafila does not look up. Pass the values with a variable, env \
                         or meta",
                        waits(&refused)
                    ));
                }
                if !of_consul.is_empty() {
                    check.warn(format!(
                        "Task {:?}: its template for {:?} calls {}, and waits on a node without Consul (`[consul]` \
                         of client-node)",
                        task.name,
                        template.destination,
                        of_consul.join(", "),
                    ));
                }
                if !of_vault.is_empty() && task.vault.is_none() {
                    check.warn(format!(
                        "{}, and the task has no token of Vault. Add a vault block to the task",
                        waits(&of_vault)
                    ));
                }
                warn_of_variables(check, job, &group.name, &task.name, &text, template);
                if template.change_mode == ChangeMode::Script
                    && !driver_config::runs_commands(&task.driver)
                {
                    check.warn(format!(
                        "Task {:?}: change_script of the template for {:?} is not run, because the driver {:?} runs \
                         no commands in its tasks. Use change_mode signal or restart",
                        task.name, template.destination, task.driver,
                    ));
                }
            }
        }
    }
}

/// Warns of variables that the task may not read: the node gets no answer for them, and the task waits.
fn warn_of_variables(
    check: &mut Validation,
    job: &Job,
    group: &str,
    task: &str,
    text: &::template::Template,
    template: &Template,
) {
    let paths = variable_paths(job, group, task);
    let is_readable = |variable: &VariablePath| {
        let is_own = variable.namespace.is_empty() || variable.namespace == job.namespace;
        is_own && paths.contains(&variable.path)
    };
    let variables = text.variables();
    for variable in variables.iter().filter(|variable| !is_readable(variable)) {
        let place = match variable.namespace.as_str() {
            "" => String::new(),
            namespace => format!(" of the namespace {namespace:?}"),
        };
        check.warn(format!(
            "Task {task:?} waits where its template for {:?} reads the variable {:?}{place}, because a task may not \
             read it. The task reads {} of its own namespace",
            template.destination,
            variable.path,
            paths.join(", "),
        ));
    }
}
