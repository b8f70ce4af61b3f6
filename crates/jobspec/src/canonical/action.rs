//! The actions of a task: commands that users run by name.

use model::job::TaskAction;

use super::name;
use super::validation::{Path, Validation};

/// Source: Nomad's rule for names of actions.
const MAX_NAME_BYTES: usize = 128;

pub(super) fn actions(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::Action],
) -> Vec<TaskAction> {
    let names = specs.iter().map(|spec| spec.name());
    name::distinct(check, path, "action", names);
    let read = |(position, spec): (usize, &job_fields::Action)| {
        let path = path.labelled("action", spec.name.as_deref(), position);
        action(check, &path, spec)
    };
    specs.iter().enumerate().map(read).collect()
}

fn action(check: &mut Validation, path: &Path, spec: &job_fields::Action) -> TaskAction {
    let name = spec.name.clone().unwrap_or_default();
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !is_plain {
        let message = format!(
            "Action name {name:?} is invalid: use 1 to {MAX_NAME_BYTES} letters, digits and dashes"
        );
        check.error(path.field("name"), message);
    }
    let command = spec.command.clone().unwrap_or_default();
    if command.is_empty() {
        let message =
            format!("Action {name:?} has no command: write a program, as in command = \"sh\"");
        check.error(path.field("command"), message);
    }
    TaskAction {
        name,
        command,
        args: spec.args.clone(),
    }
}
