//! Children of jobs, and scaling events.

use proto::v1;

use super::{Style, sorted};
use crate::output::fields::Fields;
use crate::output::table::Table;

/// Returns the sections of a parent in `job status`, in place of groups and allocations.
///
/// `children` are in any order.
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
    if let Some(block) = &job.parameterized {
        let body = parameterized(block).render();
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

fn parameterized(block: &v1::Parameterized) -> Fields {
    let list = |keys: &[String]| match keys {
        [] => "<none>".to_owned(),
        keys => keys.join(", "),
    };
    let mut fields = Fields::new();
    fields
        .add("Payload", block.payload())
        .add("Required Metadata", list(&block.meta_required))
        .add("Optional Metadata", list(&block.meta_optional));
    fields
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
