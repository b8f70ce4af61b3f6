//! Jobs that have children, and how jobs were scaled.

use proto::v1;

use super::{Style, sorted};
use crate::output::fields::Fields;
use crate::output::table::Table;

/// Returns what `job status` shows of a parent instead of groups and allocations.
///
/// `children` are its children in any order.
pub(crate) fn parent(
    job: &v1::Job,
    summary: &v1::JobSummary,
    children: &[v1::JobStub],
    style: &Style,
) -> String {
    let (counted, listed) = match &job.parameterized {
        Some(_) => ("Parameterized Job Summary", "Dispatched Jobs"),
        None => ("Children Job Summary", "Previously Launched Jobs"),
    };
    let mut out = String::new();
    if let Some(told) = &job.parameterized {
        let body = parameterized(told).render();
        out.push_str(&style.section("Parameterized Job", &body));
    }
    let counts = summary.children.unwrap_or_default();
    let mut table = Table::new(["Pending", "Running", "Dead"]);
    table.row([counts.pending, counts.running, counts.dead].map(|count| count.to_string()));
    out.push_str(&style.section(counted, &table.render()));
    if children.is_empty() {
        let body = if job.parameterized.is_some() {
            "No dispatched instances of parameterized job found\n"
        } else {
            "No instances of periodic job found\n"
        };
        out.push_str(&style.section(listed, body));
        return out;
    }
    let mut newest_first: Vec<&v1::JobStub> = children.iter().collect();
    newest_first.sort_by_key(|child| std::cmp::Reverse(child.create_index));
    let mut table = Table::new(["ID", "Status"]);
    for child in newest_first {
        table.row([
            child.id.clone(),
            super::job::status_word(&child.status, child.stop),
        ]);
    }
    out.push_str(&style.section(listed, &table.render()));
    out
}

fn parameterized(told: &v1::Parameterized) -> Fields {
    let list = |keys: &[String]| match keys {
        [] => "<none>".to_owned(),
        keys => keys.join(", "),
    };
    let mut fields = Fields::new();
    fields
        .add("Payload", told.payload())
        .add("Required Metadata", list(&told.meta_required))
        .add("Optional Metadata", list(&told.meta_optional));
    fields
}

/// Returns when something is due, and how far off that is.
pub(crate) fn when(ns: u64, style: &Style) -> String {
    let seconds = ns.saturating_sub(style.times.now_ns) / 1_000_000_000;
    let span = crate::output::time::span(seconds);
    format!("{} ({span} from now)", style.times.exact(ns))
}

/// Returns the scaling events of all groups, each with its group, the newest first.
pub(crate) fn newest_scaling_events(
    status: &v1::GetJobScaleStatusResponse,
) -> Vec<(&str, &v1::ScalingEvent)> {
    let mut rows = Vec::new();
    for (group, counts) in sorted(&status.task_groups) {
        rows.extend(counts.events.iter().map(|event| (group, event)));
    }
    rows.sort_by_key(|(_, event)| std::cmp::Reverse(event.time_ns));
    rows
}

/// Returns the table of a job's scaling events, the newest first; `None`: there are none.
pub(crate) fn scaling_events(
    status: &v1::GetJobScaleStatusResponse,
    style: &Style,
) -> Option<Table> {
    let mut header = vec!["Task Group", "Count", "PrevCount"];
    if style.verbose {
        header.extend(["Error", "Message", "Eval ID"]);
    }
    header.push("Date");
    let rows = newest_scaling_events(status);
    let mut table = Table::new(header);
    for (group, event) in &rows {
        let count = event
            .count
            .map_or("<nil>".to_owned(), |count| count.to_string());
        let mut cells = vec![(*group).to_owned(), count, event.previous_count.to_string()];
        if style.verbose {
            cells.extend([
                event.error.to_string(),
                event.message.clone(),
                event.eval_id.clone(),
            ]);
        }
        cells.push(style.times.exact(event.time_ns));
        table.row(cells);
    }
    (!rows.is_empty()).then_some(table)
}
