//! The tasks of an allocation: their states, resources and events.

use std::collections::BTreeSet;

use proto::v1;

use super::{Style, sorted};
use crate::output::fields::Fields;
use crate::output::printable;
use crate::output::size::mib;
use crate::output::table::Table;

/// Returns the names of an allocation's tasks: those of its group, then others that its node reported.
pub(crate) fn names(alloc: &v1::Allocation, group: Option<&v1::TaskGroup>) -> Vec<String> {
    let mut names: Vec<String> = group
        .into_iter()
        .flat_map(|group| &group.tasks)
        .map(|task| task.name().to_owned())
        .collect();
    let known: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let mut others: Vec<String> = alloc
        .task_states
        .keys()
        .filter(|name| !known.contains(name.as_str()))
        .cloned()
        .collect();
    others.sort_unstable();
    names.extend(others);
    names
}

/// Returns one line per task.
pub(crate) fn table(
    alloc: &v1::Allocation,
    group: Option<&v1::TaskGroup>,
    style: &Style,
) -> String {
    let mut table = Table::new(["Name", "State", "Last Event", "Time"]);
    for name in names(alloc, group) {
        let state = alloc.task_states.get(&name);
        let last = state.and_then(|state| state.events.last());
        table.row([
            name.clone(),
            state_word(state).to_owned(),
            last.map(|event| event.r#type.clone()).unwrap_or_default(),
            last.map(|event| style.time(event.time_ns))
                .unwrap_or_default(),
        ]);
    }
    style.section("Tasks", &table.render())
}

/// Returns a section per task.
pub(crate) fn sections(
    alloc: &v1::Allocation,
    group: Option<&v1::TaskGroup>,
    style: &Style,
) -> String {
    let mut out = String::new();
    for name in names(alloc, group) {
        let task = group.and_then(|group| group.tasks.iter().find(|task| task.name() == name));
        let state = alloc.task_states.get(&name);
        out.push_str(&section(&name, alloc, task, state, style));
    }
    out
}

/// Events that follow from a failure and do not name its cause.
const CONSEQUENCES: [&str; 6] = [
    "Alloc Unhealthy",
    "Killed",
    "Killing",
    "Not Restarting",
    "Received",
    "Restarting",
];

/// Returns the last event of the failed task, or else of the first one, as in
/// `task "server": Driver Failure: …`; `None` before the node's first report.
pub(crate) fn failure(alloc: &v1::Allocation) -> Option<String> {
    let states = sorted(&alloc.task_states);
    let failed = states.iter().find(|(_, state)| state.failed);
    let (name, _) = failed.or_else(|| states.first())?;
    failure_of(alloc, name)
}

/// Returns the last event of one task, in the form of [`failure`].
pub(crate) fn failure_of(alloc: &v1::Allocation, name: &str) -> Option<String> {
    let state = alloc.task_states.get(name)?;
    let mut events = state.events.iter().rev();
    let tells = |event: &&v1::TaskEvent| !CONSEQUENCES.contains(&event.r#type.as_str());
    let event = events.find(tells).or_else(|| state.events.last())?;
    let kind = printable(&event.r#type);
    let message = match event.display_message.as_str() {
        "" => String::new(),
        message => format!(": {}", printable(message)),
    };
    Some(format!("task \"{}\": {kind}{message}", printable(name)))
}

/// Returns the failure of a task that is about to be started again, as in
/// `task "server": Driver Failure: … (Task restarting in 15s)`.
pub(crate) fn restarting(alloc: &v1::Allocation) -> Option<String> {
    let states = sorted(&alloc.task_states);
    let is_restarting = |state: &v1::TaskState| {
        let last = state.events.last();
        last.is_some_and(|event| event.r#type == "Restarting")
    };
    let (name, state) = states.iter().find(|(_, state)| is_restarting(state))?;
    let last = state.events.last()?;
    let delay = match last.display_message.as_str() {
        "" => String::new(),
        message => format!(" ({})", printable(message)),
    };
    Some(format!("{}{delay}", failure_of(alloc, name)?))
}

pub(crate) fn state_word(state: Option<&v1::TaskState>) -> &str {
    match state {
        Some(state) if !state.state.is_empty() => &state.state,
        _ => "pending",
    }
}

fn section(
    name: &str,
    alloc: &v1::Allocation,
    task: Option<&v1::Task>,
    state: Option<&v1::TaskState>,
    style: &Style,
) -> String {
    let hook = task.and_then(|task| task.lifecycle.as_ref()).map(lifecycle);
    let title = format!(
        "Task \"{}\"{} is {:?}",
        printable(name),
        hook.unwrap_or_default(),
        state_word(state)
    );
    let mut out = format!("\n{}\n", style.colour.bold(&title));
    if let Some(resources) = task.and_then(|task| task.resources.as_ref()) {
        let held = alloc.resources.clone().unwrap_or_default();
        out.push_str(&resources_table(resources, &held));
        out.push('\n');
    }
    let Some(state) = state else {
        return out;
    };
    out.push_str("Task Events:\n");
    let mut fields = Fields::new();
    fields
        .add("Started At", unset(style.times.exact(state.started_at_ns)))
        .add(
            "Finished At",
            unset(style.times.exact(state.finished_at_ns)),
        )
        .add("Total Restarts", state.restarts.to_string())
        .add(
            "Last Restart",
            unset(style.times.exact(state.last_restart_at_ns)),
        );
    out.push_str(&fields.render());
    if !state.events.is_empty() {
        out.push_str("\nRecent Events:\n");
        out.push_str(&events(&state.events, style).render());
    }
    out
}

fn lifecycle(lifecycle: &v1::Lifecycle) -> String {
    let sidecar = if lifecycle.sidecar() { " sidecar" } else { "" };
    format!(" ({}{sidecar})", lifecycle.hook())
}

fn unset(time: String) -> String {
    if time.is_empty() {
        "N/A".to_owned()
    } else {
        time
    }
}

/// Disk is the task group's, and shown with each of its tasks. `memory_max` is shown where it is in effect:
/// oversubscription was enabled when the allocation was placed.
fn resources_table(resources: &v1::Resources, held: &v1::AllocatedResources) -> String {
    let amount = |value: i64| u64::try_from(value).unwrap_or_default();
    let asked = mib(amount(resources.memory_mib()));
    let memory = match resources.memory_max_mib() {
        _ if !held.memory_oversubscribed => asked,
        0 => asked,
        -1 => format!("{asked} (no limit)"),
        max => format!("{asked} (max {})", mib(amount(max))),
    };
    let cpu = match resources.cores() {
        0 => format!("{} MHz", resources.cpu_mhz()),
        1 => "1 core".to_owned(),
        cores => format!("{cores} cores"),
    };
    let mut table = Table::new(["CPU", "Memory", "Disk"]);
    table.row([cpu, memory, mib(held.disk_mib)]);
    format!("Task Resources:\n{}", table.render())
}

/// The newest first.
fn events(events: &[v1::TaskEvent], style: &Style) -> Table {
    let mut table = Table::new(["Time", "Type", "Description"]);
    for event in events.iter().rev() {
        table.row([
            style.times.exact(event.time_ns),
            event.r#type.clone(),
            event.display_message.clone(),
        ]);
    }
    table
}

/// Names tasks: `task "a"`, `tasks "a", "b"`.
pub(crate) fn named(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let noun = if names.len() == 1 { "task" } else { "tasks" };
    format!("{noun} {}", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn the_memory_maximum_is_shown_where_it_is_in_effect() {
        let shown = |memory_max_mib, memory_oversubscribed| {
            let asked = v1::Resources {
                memory_mib: Some(32),
                memory_max_mib: Some(memory_max_mib),
                ..v1::Resources::default()
            };
            let held = v1::AllocatedResources {
                memory_oversubscribed,
                ..v1::AllocatedResources::default()
            };
            resources_table(&asked, &held)
        };
        for max in [0, 64, -1] {
            let said = shown(max, false);
            assert!(said.contains("  32 MiB  0"), "{said}");
        }
        assert!(shown(0, true).contains("  32 MiB  0"));
        assert!(shown(64, true).contains("32 MiB (max 64 MiB)"));
        assert!(shown(-1, true).contains("32 MiB (no limit)"));
    }

    #[test]
    fn a_failure_is_the_cause_and_not_its_consequences() {
        let expected = "task \"server\": Driver Failure: no such command";
        assert_eq!(
            failure(&fixtures::never_started()).as_deref(),
            Some(expected)
        );
        // A task may have no events but consequences.
        let mut alloc = fixtures::never_started();
        for state in alloc.task_states.values_mut() {
            state
                .events
                .retain(|event| event.r#type == "Not Restarting");
        }
        let said = failure(&alloc).unwrap();
        assert!(said.contains("Exceeded allowed attempts"), "{said}");
        alloc.task_states.clear();
        assert_eq!(failure(&alloc), None);
    }
}
