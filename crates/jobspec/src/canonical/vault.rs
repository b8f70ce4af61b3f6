//! The vault block of a task. Those of groups and jobs are part of their tasks by now.

use model::template::ChangeMode;
use model::vault::Vault;

use super::check::{Check, Path};
use super::signal;

const DEFAULT_SIGNAL: &str = "SIGHUP";

pub(super) fn vault(check: &mut Check, path: &Path, spec: Option<&spec::Vault>) -> Option<Vault> {
    let spec = spec?;
    let path = path.block("vault");
    check.error(&path, "Vault is not supported by this version of Kafila: hand secrets to the task by a file that the node keeps");
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let modes = [ChangeMode::Restart, ChangeMode::Signal, ChangeMode::Noop];
    let modes = modes.map(|mode| (mode.as_str(), mode));
    let given = spec.change_mode.as_deref().filter(|mode| !mode.is_empty());
    let change_mode = check.choice(
        path.field("change_mode"),
        given,
        &modes,
        ChangeMode::Restart,
        |mode| format!("Unknown change mode {mode:?}: use restart, signal or noop"),
    );
    let signal = spec
        .change_signal
        .as_deref()
        .filter(|signal| !signal.is_empty());
    let change_signal = signal.unwrap_or(DEFAULT_SIGNAL).to_uppercase();
    if let Some(problem) = signal::problem(&change_signal) {
        check.error(path.field("change_signal"), problem);
    }
    let cluster = spec
        .cluster
        .as_deref()
        .filter(|cluster| !cluster.is_empty());
    Some(Vault {
        policies: spec.policies.clone(),
        role: text(&spec.role),
        namespace: text(&spec.namespace),
        cluster: cluster.unwrap_or(Vault::DEFAULT_CLUSTER).to_owned(),
        env: spec.env.unwrap_or(true),
        disable_file: spec.disable_file.unwrap_or(false),
        change_mode,
        change_signal,
        allow_token_expiration: spec.allow_token_expiration.unwrap_or(false),
    })
}
