//! Text of `eval explain`: the verdicts of all nodes for an evaluation's job.

use proto::v1;

use super::Style;
use crate::output::fields::Fields;
use crate::output::table::Table;
use crate::output::{NONE, printable};

pub(crate) fn render(
    eval: &v1::Evaluation,
    explanation: &v1::Explanation,
    style: &Style,
) -> String {
    let mut out = fields(eval, explanation, style).render();
    if !explanation.empty_reason.is_empty() {
        let why = printable(&explanation.empty_reason);
        out.push_str(&format!("\nNothing is placed: {why}.\n"));
    }
    for group in &explanation.groups {
        let title = format!("Task Group \"{}\"", printable(&group.name));
        out.push_str(&style.section(&title, &body(group, eval, style)));
    }
    out
}

fn fields(eval: &v1::Evaluation, explanation: &v1::Explanation, style: &Style) -> Fields {
    let looked = match eval.snapshot_index {
        0 => "not yet".to_owned(),
        index => format!("revision {index}"),
    };
    let version = explanation.job_version.map(|version| version.to_string());
    let wait_until = match waits(eval) {
        true => style.time(eval.wait_until_ns),
        false => String::new(),
    };
    let mut fields = Fields::new();
    fields
        .add("Evaluation", style.id(&eval.id))
        .add("Status", eval.status.as_str())
        .add_some("Wait Until", wait_until)
        .add("Job ID", eval.job_id.as_str())
        .add("Job Version", version.unwrap_or_default())
        .add("Explained At", format!("revision {}", explanation.index))
        .add("Evaluated At", looked);
    fields
}

/// Returns the section of one group, without its title.
fn body(group: &v1::GroupExplanation, eval: &v1::Evaluation, style: &Style) -> String {
    let mut lines = vec![counts(group, waits(eval), style)];
    lines.extend(hold(group, eval, style));
    lines.push(question(group, waits(eval), style));
    if let Some(chosen) = &group.chosen {
        lines.push(chosen_line(chosen, style));
        lines.extend(chosen.victims.iter().map(|one| victim(one, style)));
    }
    lines.extend(group.preemption.as_ref().map(preemption));
    lines.push(String::new());
    lines.push(table(group).render().trim_end().to_owned());
    for class in &group.classes {
        let reasons = reasons(class, style);
        if !reasons.is_empty() {
            lines.push(String::new());
            lines.push(format!("Class \"{}\"", class_name(&class.class)));
            lines.extend(reasons);
        }
    }
    if let Some(nearest) = &group.nearest {
        lines.push(String::new());
        lines.extend(node("Nearest miss", nearest, style));
    }
    if let Some(asked) = &group.node {
        lines.push(String::new());
        lines.extend(node("Requested", asked, style));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Tells whether the evaluation is delayed: it is explained as of the end of its delay.
fn waits(eval: &v1::Evaluation) -> bool {
    eval.status == "pending" && eval.wait_until_ns > 0
}

/// Returns the numbers of allocations, as in `3 wanted, 2 live, 1 cannot be placed`.
fn counts(group: &v1::GroupExplanation, waits: bool, style: &Style) -> String {
    let per_node = if group.question == "everywhere" {
        " on each node"
    } else {
        ""
    };
    let mut parts = vec![
        format!("{} wanted{per_node}", group.wanted),
        format!("{} live", group.live),
    ];
    if group.done > 0 {
        parts.push(format!("{} done", group.done));
    }
    parts.push(format!(
        "{} placed or last updated by this evaluation",
        group.placed
    ));
    if group.would_place > 0 {
        let when = if waits { "then" } else { "now" };
        parts.push(format!("{} would be placed {when}", group.would_place));
    }
    if group.waiting > 0 {
        let when = style.time(group.waits_until_ns);
        parts.push(format!(
            "{} failed and will be rescheduled {when}",
            group.waiting
        ));
    }
    if group.missing > 0 {
        parts.push(format!("{} cannot be placed", group.missing));
    }
    parts.join(", ")
}

/// Returns the deployment that holds back placements, and the command that ends that.
fn hold(group: &v1::GroupExplanation, eval: &v1::Evaluation, style: &Style) -> Option<String> {
    let (id, job) = (style.id(&group.hold_deployment_id), printable(&eval.job_id));
    let why = match group.hold_reason.as_str() {
        "" => return None,
        "failed" => format!(
            "has failed and holds back placements of this version: run a changed job file, or \
             'kafila job revert {job} VERSION'"
        ),
        "paused" => format!("is paused and holds back placements: 'kafila deployment resume {id}'"),
        "promotion" => {
            format!("waits for the promotion of its canaries: 'kafila deployment promote {id}'")
        }
        other => printable(other),
    };
    Some(format!("Deployment {id} {why}"))
}

/// Returns the allocation for which nodes were checked.
fn question(group: &v1::GroupExplanation, waits: bool, style: &Style) -> String {
    let id = style.id(&group.alloc_id);
    let what = match group.question.as_str() {
        "unplaced" => "an allocation that cannot be placed".to_owned(),
        "would-place" if waits => "an allocation that would be placed then".to_owned(),
        "would-place" => "an allocation that would be placed now".to_owned(),
        "placed" => format!("allocation {id} of this evaluation, as if it were placed again"),
        "running" => format!("allocation {id} of another evaluation, as if it were placed again"),
        "one-more" if group.live.saturating_add(group.done) < group.wanted => {
            "a missing allocation".to_owned()
        }
        "one-more" => "one allocation more than the job wants".to_owned(),
        "everywhere" => "an allocation on each node".to_owned(),
        other => printable(other),
    };
    let version = group.job_version;
    format!("Checked for {what} (job version {version})")
}

fn chosen_line(chosen: &v1::ChosenNode, style: &Style) -> String {
    let (name, id) = (printable(&chosen.node_name), style.id(&chosen.node_id));
    let score = match &chosen.score {
        Some(score) => format!("score {}", scored(score)),
        None => "which could not take it again".to_owned(),
    };
    let disk = if chosen.keeps_disk {
        "; kept for its predecessor's disk, regardless of the score"
    } else {
        ""
    };
    format!("Chosen: node {name} ({id}), {score}{disk}")
}

fn victim(victim: &v1::ExplainedVictim, style: &Style) -> String {
    let (id, job) = (style.id(&victim.alloc_id), printable(&victim.job_id));
    let priority = victim.priority;
    format!("  * evicts allocation {id} of job \"{job}\" (priority {priority})")
}

/// Returns the numbers of full nodes by preemption outcome.
fn preemption(counts: &v1::PreemptionCounts) -> String {
    let needed = match (counts.min_priority, counts.type_disabled) {
        (0, _) => String::new(),
        (least, false) => format!(" ({least} or more needed)"),
        (least, true) => format!(" ({least} or more and preemption enabled needed)"),
    };
    let outcomes = [
        (counts.possible, "possible", ""),
        (counts.disabled, "possible", " if enabled"),
        (counts.outranked, "priority too low", needed.as_str()),
        (counts.insufficient, "insufficient", ""),
    ];
    let outcomes = outcomes.into_iter().filter(|(count, ..)| *count > 0);
    let outcomes =
        outcomes.map(|(count, what, remark)| format!("{what} on {}{remark}", nodes(count)));
    format!("Preemption: {}", outcomes.collect::<Vec<_>>().join("; "))
}

fn table(group: &v1::GroupExplanation) -> Table {
    let mut table = Table::new([
        "Class",
        "Nodes",
        "Holding",
        "Out of Scope",
        "Unavailable",
        "Filtered",
        "Exhausted",
        "Outscored",
        "Chosen",
    ]);
    let cells = |name: String, holds: String, counts: Option<&v1::VerdictCounts>| {
        let counts = counts.copied().unwrap_or_default();
        let counts = [
            counts.out_of_scope,
            counts.unavailable,
            counts.filtered,
            counts.exhausted,
            counts.outscored,
            counts.chosen,
        ];
        let total: u32 = counts.iter().sum();
        let counts = counts.map(|count| count.to_string());
        [name, total.to_string(), holds].into_iter().chain(counts)
    };
    for class in &group.classes {
        let name = class_name(&class.class);
        table.row(cells(name, class.holds.to_string(), class.counts.as_ref()));
    }
    if group.classes_left_out > 0 {
        let (classes, nodes) = (group.classes_left_out, group.nodes_left_out);
        let others = if classes == 1 { "other" } else { "others" };
        table.row([format!("{classes} {others}"), nodes.to_string()]);
    }
    table.row(cells(
        "all".to_owned(),
        "-".to_owned(),
        group.counts.as_ref(),
    ));
    table
}

fn class_name(class: &str) -> String {
    if class.is_empty() {
        NONE.to_owned()
    } else {
        printable(class)
    }
}

/// Returns the reasons that rule out nodes of one class, one line each.
fn reasons(class: &v1::ClassExplanation, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    for reason in &class.reasons {
        let missing = match (reason.least_missing, reason.most_missing) {
            (_, 0) => String::new(),
            (1, 1) => {
                let unit = reason.unit.strip_suffix('s').unwrap_or(&reason.unit);
                format!(", 1 {unit} missing")
            }
            (least, most) if least == most => format!(", {most} {} missing", reason.unit),
            (least, most) => format!(", {least} to {most} {} missing", reason.unit),
        };
        let (verdict, text) = (&reason.verdict, printable(&reason.reason));
        let nodes = nodes(reason.nodes);
        lines.push(format!("  * {verdict}: {text} ({nodes}{missing})"));
    }
    if class.reasons_left_out > 0 {
        let others = class.reasons_left_out;
        lines.push(format!("  * and {others} other reasons"));
    }
    if let Some(best) = &class.best {
        let score = best.score.clone().unwrap_or_default();
        let (name, id) = (printable(&best.node_name), style.id(&score.node_id));
        let gap = match best.gap_per_mille {
            None => "the chosen node could not take it again".to_owned(),
            Some(0) => "equal to the chosen node".to_owned(),
            Some(gap) if gap > 0 => format!("{} below the chosen node", thousandths(gap)),
            Some(gap) => format!("now {} above the chosen node", thousandths(-gap)),
        };
        let score = scored(&score);
        lines.push(format!(
            "  * outscored: best is {name} ({id}), score {score}, {gap}"
        ));
    }
    lines
}

fn nodes(count: u32) -> String {
    match count {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    }
}

/// Returns a score with the parts that it is the mean of.
fn scored(score: &v1::NodeScore) -> String {
    let parts = score.parts.unwrap_or_default();
    let parts = crate::json::metric::named(&parts);
    let parts: Vec<_> = parts
        .map(|(scorer, said)| format!("{scorer} {}", thousandths(said)))
        .collect();
    format!(
        "{} ({})",
        thousandths(score.score_per_mille),
        parts.join(", ")
    )
}

fn thousandths(per_mille: i32) -> String {
    format!("{:.3}", f64::from(per_mille) / 1000.0)
}

/// Returns the verdict of one node, and the changes that would remove its blockers.
fn node(what: &str, node: &v1::NodeExplanation, style: &Style) -> Vec<String> {
    let (name, id) = (printable(&node.node_name), style.id(&node.node_id));
    let class = class_name(&node.class);
    let score = node.score.as_ref().map(scored);
    let score = score.map(|score| format!(", score {score}"));
    let verdict = printable(&node.verdict);
    let holds = match node.holds {
        0 => String::new(),
        holds => format!(", holds {holds}"),
    };
    let score = score.unwrap_or_default();
    let mut lines = vec![format!(
        "{what}: node {name} ({id}, class {class}), {verdict}{holds}{score}"
    )];
    let changes = node.blockers.iter();
    lines.extend(changes.map(|blocker| format!("  -> {}", printable(&blocker.change))));
    let preemption = node.preemption.iter();
    lines.extend(preemption.map(|it| format!("  Preemption: {}", printable(&it.text))));
    lines
}
