//! The signals that a task may be sent.

use std::collections::BTreeSet;

use model::job::Task;
use model::signal::{SIGNALS, may_be_configured};
use model::template::ChangeMode;
use model::{Constraint, Operator};

/// Returns the problem of `name`, if any.
pub(super) fn problem(name: &str) -> Option<String> {
    if name.is_empty() || may_be_configured(name) {
        return None;
    }
    let upper = name.to_uppercase();
    let with_prefix = format!("SIG{upper}");
    let meant = [upper.as_str(), with_prefix.as_str()];
    let mut known = SIGNALS.iter().filter(|signal| may_be_configured(signal));
    let hint = match known.find(|signal| meant.contains(signal)) {
        Some(signal) => format!("did you mean {signal:?}?"),
        None => "write its name, as in \"SIGINT\" or \"SIGTERM\"".to_owned(),
    };
    Some(format!("unknown signal {name:?}: {hint}"))
}

/// Adds the constraint that a node can send the signals of a group's tasks, unless it is there.
///
/// Source: Nomad's implied constraints: the union, sorted, at the group.
pub(super) fn imply(constraints: &mut Vec<Constraint>, tasks: &[Task]) {
    let mut signals: BTreeSet<&str> = BTreeSet::new();
    for task in tasks {
        signals.insert(&task.kill_signal);
        signals.extend(
            task.templates
                .iter()
                .map(|template| template.change_signal.as_str()),
        );
        let vault = task.vault.as_ref();
        let vault = vault.filter(|vault| vault.change_mode == ChangeMode::Signal);
        signals.extend(vault.map(|vault| vault.change_signal.as_str()));
    }
    let signals: Vec<&str> = signals
        .into_iter()
        .filter(|signal| !signal.is_empty())
        .collect();
    if signals.is_empty() {
        return;
    }
    let implied = Constraint {
        left: "${attr.os.signals}".to_owned(),
        operator: Operator::SetContains,
        right: signals.join(","),
    };
    if !constraints.contains(&implied) {
        constraints.push(implied);
    }
}
