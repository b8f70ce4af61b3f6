//! Evaluations.

use std::collections::BTreeSet;

use proto::v1;

use super::{Style, alloc, metric, sorted};
use crate::output::fields::Fields;
use crate::output::table::Table;

pub(crate) fn table(evals: &[v1::Evaluation], style: &Style) -> Table {
    let mut table = Table::new([
        "ID",
        "Priority",
        "Triggered By",
        "Job ID",
        "Namespace",
        "Node ID",
        "Status",
        "Placement Failures",
    ]);
    for eval in evals {
        table.row([
            style.id(&eval.id),
            eval.priority.to_string(),
            eval.triggered_by.clone(),
            eval.job_id.clone(),
            eval.namespace.clone(),
            style.id(&eval.node_id),
            eval.status.clone(),
            placement_failures(eval).to_owned(),
        ]);
    }
    table
}

/// Returns the table of one job's evaluations, the newest first.
pub(crate) fn of_job(evals: &[v1::Evaluation], style: &Style) -> Table {
    let mut table = Table::new([
        "ID",
        "Priority",
        "Triggered By",
        "Status",
        "Placement Failures",
    ]);
    for eval in newest_first(evals) {
        table.row([
            style.id(&eval.id),
            eval.priority.to_string(),
            eval.triggered_by.clone(),
            eval.status.clone(),
            placement_failures(eval).to_owned(),
        ]);
    }
    table
}

pub(crate) fn newest_first(evals: &[v1::Evaluation]) -> Vec<&v1::Evaluation> {
    let mut sorted: Vec<_> = evals.iter().collect();
    sorted.sort_by(|a, b| {
        let by_age = b.create_index.cmp(&a.create_index);
        by_age.then_with(|| a.id.cmp(&b.id))
    });
    sorted
}

fn placement_failures(eval: &v1::Evaluation) -> &'static str {
    match (eval.status.as_str(), eval.failed_task_groups.is_empty()) {
        ("blocked", _) => "N/A - In Progress",
        (_, true) => "false",
        (_, false) => "true",
    }
}

/// Returns the failed placements and their reasons, one line each.
pub(crate) fn failed_placements(eval: &v1::Evaluation) -> Vec<String> {
    sorted(&eval.failed_task_groups)
        .into_iter()
        .flat_map(|(name, why)| metric::group(name, why))
        .collect()
}

/// Returns the failed placements with a reference to `eval explain`; empty if all are placed.
pub(crate) fn failures_to_explain(eval: &v1::Evaluation, style: &Style) -> Vec<String> {
    let mut lines = failed_placements(eval);
    if !lines.is_empty() {
        let id = style.id(&eval.id);
        lines.push(format!(
            "Run 'kafila eval explain {id}' for what each node says, and what would change it"
        ));
    }
    lines
}

/// An evaluation and its context.
pub(crate) struct Status<'a> {
    pub(crate) eval: &'a v1::Evaluation,
    /// All evaluations of its job, this one included.
    pub(crate) of_job: &'a [v1::Evaluation],
    pub(crate) allocs: &'a [v1::Allocation],
}

impl Status<'_> {
    pub(crate) fn render(&self, style: &Style) -> String {
        let mut out = self.fields(style).render();
        let related = related(self.eval, self.of_job);
        if !related.is_empty() {
            let mut table = Table::new([
                "ID",
                "Priority",
                "Triggered By",
                "Node ID",
                "Status",
                "Description",
            ]);
            for eval in related {
                table.row([
                    style.id(&eval.id),
                    eval.priority.to_string(),
                    eval.triggered_by.clone(),
                    style.id(&eval.node_id),
                    eval.status.clone(),
                    eval.status_description.clone(),
                ]);
            }
            out.push_str(&style.section("Related Evaluations", &table.render()));
        }
        if !self.allocs.is_empty() {
            let table = alloc::table(self.allocs, style);
            out.push_str(&style.section("Placed Allocations", &table.render()));
        }
        let failed = failures_to_explain(self.eval, style);
        if !failed.is_empty() {
            let body = format!("{}\n", failed.join("\n"));
            out.push_str(&style.section("Failed Placements", &body));
        }
        out
    }

    fn fields(&self, style: &Style) -> Fields {
        let eval = self.eval;
        let mut fields = Fields::new();
        fields
            .add("ID", style.id(&eval.id))
            .add("Create Time", style.time(eval.create_time_ns))
            .add("Modify Time", style.time(eval.modify_time_ns))
            .add("Status", eval.status.as_str())
            .add("Status Description", description(eval))
            .add("Type", eval.r#type.as_str())
            .add("TriggeredBy", eval.triggered_by.as_str())
            .add("Job ID", eval.job_id.as_str())
            .add("Namespace", eval.namespace.as_str())
            .add_some("Node ID", style.id(&eval.node_id))
            .add_some("Deployment ID", style.id(&eval.deployment_id))
            .add("Priority", eval.priority.to_string())
            .add("Placement Failures", placement_failures(eval))
            .add_some("Wait Until", style.time(eval.wait_until_ns))
            .add("Previous Eval", style.id(&eval.previous_eval_id))
            .add("Next Eval", style.id(&eval.next_eval_id))
            .add("Blocked Eval", style.id(&eval.blocked_eval_id));
        fields
    }
}

/// Returns the description, or the status if there is none. Source: Nomad.
fn description(eval: &v1::Evaluation) -> &str {
    if eval.status_description.is_empty() {
        &eval.status
    } else {
        &eval.status_description
    }
}

/// Returns all predecessors and successors of `eval`, the newest first.
fn related<'a>(eval: &v1::Evaluation, of_job: &'a [v1::Evaluation]) -> Vec<&'a v1::Evaluation> {
    let mut reached = BTreeSet::from([eval.id.clone()]);
    reached.extend(links(eval).map(str::to_owned));
    // Each round adds at least one evaluation, or is the last.
    loop {
        let before = reached.len();
        for other in of_job {
            let touches =
                reached.contains(&other.id) || links(other).any(|id| reached.contains(id));
            if touches {
                reached.insert(other.id.clone());
                reached.extend(links(other).map(str::to_owned));
            }
        }
        if reached.len() == before {
            break;
        }
    }
    let is_related = |other: &&v1::Evaluation| other.id != eval.id && reached.contains(&other.id);
    newest_first(of_job)
        .into_iter()
        .filter(is_related)
        .collect()
}

fn links(eval: &v1::Evaluation) -> impl Iterator<Item = &str> {
    [
        &eval.previous_eval_id,
        &eval.next_eval_id,
        &eval.blocked_eval_id,
    ]
    .into_iter()
    .map(String::as_str)
    .filter(|id| !id.is_empty())
}
