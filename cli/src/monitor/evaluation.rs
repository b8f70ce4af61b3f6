//! The evaluation stage of the monitor, from pending to a terminal status.

use std::collections::BTreeMap;

use proto::v1;

use super::line::Output;
use super::question::{Ask, Event, Goal, Next};
use super::wait_reason;
use crate::exit::Exit;
use crate::output::time::show_duration;
use crate::render::{Style, eval};

/// The state of one evaluation as printed so far.
#[derive(Debug)]
pub(super) struct EvaluationWatch {
    id: String,
    /// The index of the last answer.
    seen_index: u64,
    /// A follow-up evaluation, whose title is not printed yet.
    untitled: bool,
    /// The last printed status.
    status: String,
    printed_node: bool,
    printed_job: bool,
    printed_deployment: bool,
    /// Allocation ID → the last printed client status.
    allocs: BTreeMap<String, String>,
    placement_failed: bool,
    /// First time seen pending and due, Unix nanoseconds.
    pending_since_ns: Option<u64>,
    said_pending: bool,
    /// The evaluation is pending for too long; the reason is being queried.
    asks_why: bool,
    /// The evaluation of the last answer.
    last: Option<Box<v1::Evaluation>>,
}

/// Time in pending before the monitor prints a hint. A worker usually takes an evaluation within
/// milliseconds, and a failover takes less than this.
const PENDING_TIMEOUT_NS: u64 = 10_000_000_000;

impl EvaluationWatch {
    /// `untitled`: the title waits for the first answer.
    pub(super) fn new(id: &str, untitled: bool) -> Self {
        Self {
            id: id.to_owned(),
            seen_index: 0,
            untitled,
            status: "pending".to_owned(),
            printed_node: false,
            printed_job: false,
            printed_deployment: false,
            allocs: BTreeMap::new(),
            placement_failed: false,
            pending_since_ns: None,
            said_pending: false,
            asks_why: false,
            last: None,
        }
    }

    pub(super) fn ask(&self) -> Ask {
        if self.asks_why {
            return Ask::IsPaused;
        }
        Ask::Evaluation {
            id: self.id.clone(),
            after: self.seen_index,
        }
    }

    pub(super) fn title(&self, style: &Style) -> Output {
        Output::Step(format!("Monitoring evaluation \"{}\"", style.id(&self.id)))
    }

    /// Returns the reason of the wait; `None` before the first answer.
    pub(super) fn wait_reason(&self, style: &Style) -> Option<String> {
        let last = self.last.as_ref()?;
        Some(wait_reason::of_evaluation(style, last))
    }

    pub(super) fn placement_failed(&self) -> bool {
        self.placement_failed
    }

    pub(super) fn step(
        &mut self,
        style: &Style,
        goal: Goal,
        event: Event,
        out: &mut Vec<Output>,
    ) -> Next {
        match event {
            Event::Evaluation {
                evaluation,
                allocs,
                index,
            } => {
                self.seen_index = index;
                if std::mem::take(&mut self.untitled) {
                    out.push(self.late_title(style, &evaluation));
                }
                self.origin(style, &evaluation, out);
                for alloc in &allocs {
                    self.alloc(style, &evaluation, alloc, out);
                }
                self.status(&evaluation, out);
                self.pending(style, &evaluation);
                let next = self.ended(style, goal, &evaluation, &allocs, out);
                self.last = Some(evaluation);
                next
            }
            Event::IsPaused(is_paused) => {
                self.asks_why = false;
                self.pending_reason(style, is_paused, out);
                Next::Stay
            }
            Event::NotFound => {
                let id = style.id(&self.id);
                out.push(Output::Step(format!(
                    "No evaluation with id \"{id}\" found"
                )));
                Next::Ended(Exit::Failure)
            }
            _ => Next::Stay,
        }
    }

    /// Returns the title of an evaluation that follows another one.
    fn late_title(&self, style: &Style, evaluation: &v1::Evaluation) -> Output {
        let wait = evaluation.wait_until_ns.saturating_sub(style.times.now_ns) / 1_000_000_000;
        if wait == 0 {
            return self.title(style);
        }
        let id = style.id(&self.id);
        Output::Step(format!(
            "Monitoring next evaluation \"{id}\" in {}",
            show_duration(wait)
        ))
    }

    /// Prints the trigger of the evaluation once.
    fn origin(&mut self, style: &Style, evaluation: &v1::Evaluation, out: &mut Vec<Output>) {
        if !evaluation.node_id.is_empty() && !std::mem::replace(&mut self.printed_node, true) {
            let node = style.id(&evaluation.node_id);
            out.push(Output::Detail(format!(
                "Evaluation triggered by node \"{node}\""
            )));
        }
        if !evaluation.job_id.is_empty() && !std::mem::replace(&mut self.printed_job, true) {
            let job = &evaluation.job_id;
            out.push(Output::Detail(format!(
                "Evaluation triggered by job {job:?}"
            )));
        }
        let deployment = &evaluation.deployment_id;
        if !deployment.is_empty() && !std::mem::replace(&mut self.printed_deployment, true) {
            let id = style.id(deployment);
            out.push(Output::Detail(format!(
                "Evaluation within deployment: \"{id}\""
            )));
        }
    }

    fn alloc(
        &mut self,
        style: &Style,
        evaluation: &v1::Evaluation,
        alloc: &v1::Allocation,
        out: &mut Vec<Output>,
    ) {
        let known = self
            .allocs
            .insert(alloc.id.clone(), alloc.client_status.clone());
        let id = style.id(&alloc.id);
        if let Some(before) = known {
            if before != alloc.client_status {
                let now = &alloc.client_status;
                let why = match alloc.client_description.as_str() {
                    "" => String::new(),
                    description => format!(" ({description})"),
                };
                let text =
                    format!("Allocation \"{id}\" status changed: {before:?} -> {now:?}{why}");
                out.push(Output::Detail(text));
            }
            return;
        }
        let (node, group) = (style.id(&alloc.node_id), &alloc.task_group);
        let verb = if alloc.create_index < evaluation.create_index {
            "modified"
        } else if alloc.desired_status == "run" {
            "created"
        } else {
            return;
        };
        out.push(Output::Detail(format!(
            "Allocation \"{id}\" {verb}: node \"{node}\", group {group:?}"
        )));
    }

    fn status(&mut self, evaluation: &v1::Evaluation, out: &mut Vec<Output>) {
        let before = std::mem::replace(&mut self.status, evaluation.status.clone());
        let now = &evaluation.status;
        if before != *now && now != "pending" {
            let text = format!("Evaluation status changed: {before:?} -> {now:?}");
            out.push(Output::Detail(text));
        }
    }

    /// Queries the reason once if no worker takes the evaluation.
    fn pending(&mut self, style: &Style, evaluation: &v1::Evaluation) {
        let now = style.times.now_ns;
        if evaluation.status != "pending" || evaluation.wait_until_ns > now || self.said_pending {
            return;
        }
        let since = *self.pending_since_ns.get_or_insert(now);
        if now.saturating_sub(since) >= PENDING_TIMEOUT_NS {
            self.said_pending = true;
            self.asks_why = true;
        }
    }

    /// Prints that no worker has taken the evaluation, and the likely reason.
    fn pending_reason(&self, style: &Style, is_paused: bool, out: &mut Vec<Output>) {
        let since = self.pending_since_ns.unwrap_or(style.times.now_ns);
        let waited = show_duration(style.times.now_ns.saturating_sub(since) / 1_000_000_000);
        let why = if is_paused {
            "the eval-broker is paused. Resume it with 'kafila operator scheduler set-config \
             -pause-eval-broker=false'"
        } else {
            "check that a scheduler-worker runs, and that 'kafila operator leaders' shows leaders of \
             the eval-broker and the plan-applier"
        };
        out.push(Output::Detail(format!(
            "No scheduler has taken the evaluation for {waited}: {why}"
        )));
    }

    /// Prints the result of a terminal evaluation and returns the next stage.
    fn ended(
        &mut self,
        style: &Style,
        goal: Goal,
        evaluation: &v1::Evaluation,
        allocs: &[v1::Allocation],
        out: &mut Vec<Output>,
    ) -> Next {
        let status = &evaluation.status;
        if !matches!(status.as_str(), "complete" | "failed" | "canceled") {
            return Next::Stay;
        }
        let id = style.id(&self.id);
        let title = format!("Evaluation \"{id}\" finished with status {status:?}");
        if evaluation.failed_task_groups.is_empty() {
            let why = match evaluation.status_description.as_str() {
                "" => String::new(),
                description if status == "complete" || description == status => String::new(),
                description => format!(": {description}"),
            };
            out.push(Output::Step(format!("{title}{why}")));
        } else {
            out.push(Output::Step(format!(
                "{title} but failed to place all allocations:"
            )));
            for line in eval::failed_placements(evaluation) {
                out.push(if line.starts_with("Task Group") {
                    Output::Detail(line)
                } else {
                    Output::Item(line)
                });
            }
            if !evaluation.blocked_eval_id.is_empty() {
                let blocked = style.id(&evaluation.blocked_eval_id);
                out.push(Output::Detail(format!(
                    "Evaluation \"{blocked}\" waiting for additional capacity to place remainder"
                )));
            }
        }
        // A failed evaluation has placed nothing, even without failed groups.
        self.placement_failed = !evaluation.failed_task_groups.is_empty() || status == "failed";
        next(goal, evaluation, allocs)
    }
}

fn next(goal: Goal, evaluation: &v1::Evaluation, allocs: &[v1::Allocation]) -> Next {
    let next = after(goal, evaluation, allocs);
    // A complete evaluation without changes may be blocked by a failed deployment.
    let is_content = evaluation.status == "complete" && evaluation.failed_task_groups.is_empty();
    let rolls_out = deployment_of(evaluation, allocs).is_some();
    let has_job = !evaluation.job_id.is_empty();
    let is_service = evaluation.r#type == "service" && !rolls_out;
    // Nor does a batch job that has ended place anything.
    let is_idle_batch = is_batch(&evaluation.r#type) && allocs.is_empty();
    if goal != Goal::Stop && has_job && is_content && (is_service || is_idle_batch) {
        let (job_id, next) = (evaluation.job_id.clone(), Box::new(next));
        return Next::UnlessBlocked { job_id, next };
    }
    next
}

/// Tells whether jobs of this type end by themselves.
pub(super) fn is_batch(job_type: &str) -> bool {
    matches!(job_type, "batch" | "sysbatch")
}

fn after(goal: Goal, evaluation: &v1::Evaluation, allocs: &[v1::Allocation]) -> Next {
    if !evaluation.next_eval_id.is_empty() {
        return Next::Evaluation(evaluation.next_eval_id.clone());
    }
    if goal == Goal::Stop {
        return Next::Ended(Exit::Success);
    }
    match deployment_of(evaluation, allocs) {
        Some(id) => Next::Deployment(id.clone()),
        None => Next::Ended(Exit::Success),
    }
}

/// Returns the deployment of an evaluation: its own, or that of its allocations, because the
/// evaluation that creates a deployment does not name it.
fn deployment_of<'a>(
    evaluation: &'a v1::Evaluation,
    allocs: &'a [v1::Allocation],
) -> Option<&'a String> {
    let named = Some(&evaluation.deployment_id).filter(|id| !id.is_empty());
    let of_allocs = || allocs.iter().map(|alloc| &alloc.deployment_id);
    named.or_else(|| of_allocs().find(|id| !id.is_empty()))
}
