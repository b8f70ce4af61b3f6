//! Jobs.

use std::collections::HashMap;

use proto::v1;

use super::deployment_hold::DeploymentHold;
use super::{Style, alloc, deployment, eval, sorted};
use crate::output::fields::Fields;
use crate::output::table::Table;

/// Returns the table of jobs; `namespaces` adds their column.
pub(crate) fn table(jobs: &[v1::JobStub], namespaces: bool, style: &Style) -> Table {
    let mut header = vec!["ID", "Type", "Priority", "Status", "Submit Date"];
    if namespaces {
        header.insert(1, "Namespace");
    }
    let mut table = Table::new(header);
    for job in jobs {
        let mut cells = vec![
            job.id.clone(),
            type_word(job),
            job.priority.to_string(),
            status_word(&job.status, job.stop),
            style.times.exact(job.submit_time_ns),
        ];
        if namespaces {
            cells.insert(1, job.namespace.clone());
        }
        table.row(cells);
    }
    table
}

/// Returns the type of a job, as in `batch/periodic`.
fn type_word(job: &v1::JobStub) -> String {
    let mut word = job.r#type.clone();
    if job.periodic {
        word.push_str("/periodic");
    }
    if job.parameterized {
        word.push_str("/parameterized");
    }
    word
}

pub(super) fn status_word(status: &str, stopped: bool) -> String {
    if stopped {
        format!("{status} (stopped)")
    } else {
        status.to_owned()
    }
}

/// Formats a future time with the duration until then.
pub(crate) fn due(ns: u64, style: &Style) -> String {
    let seconds = ns.saturating_sub(style.times.now_ns) / 1_000_000_000;
    let duration = crate::output::time::show_duration(seconds);
    format!("{} ({duration} from now)", style.times.exact(ns))
}

/// The input of `job status`.
pub(crate) struct Status<'a> {
    pub(crate) job: &'a v1::Job,
    pub(crate) summary: &'a v1::JobSummary,
    pub(crate) evals: &'a [v1::Evaluation],
    pub(crate) latest_deployment: Option<&'a v1::Deployment>,
    pub(crate) allocs: &'a [v1::Allocation],
    pub(crate) show_evals: bool,
}

/// Returns the header of a job.
///
/// `next_launch_ns` is the next periodic launch; 0: none.
pub(crate) fn fields(job: &v1::Job, next_launch_ns: u64, style: &Style) -> Fields {
    let is_periodic = job.periodic.is_some();
    let is_parameterized = job.parameterized.is_some() && !job.dispatched();
    let mut fields = Fields::new();
    fields
        .add("ID", job.id())
        .add("Name", job.name())
        .add("Submit Date", style.times.exact(job.submit_time_ns()))
        .add("Type", job.r#type())
        .add("Priority", job.priority().to_string())
        .add("Datacenters", job.datacenters.join(","))
        .add("Namespace", job.namespace())
        .add("Node Pool", job.node_pool())
        .add("Status", status_word(job.status(), job.stop()))
        .add("Periodic", is_periodic.to_string())
        .add("Parameterized", is_parameterized.to_string())
        .add_some("Idempotency Token", job.dispatch_idempotency_token());
    if next_launch_ns > 0 {
        fields.add("Next Periodic Launch", due(next_launch_ns, style));
    } else if is_periodic && !is_parameterized {
        fields.add("Next Periodic Launch", "none");
    }
    fields
}

impl Status<'_> {
    pub(crate) fn render(&self, style: &Style) -> String {
        let mut out = fields(self.job, 0, style).render();
        out.push_str(&style.section("Summary", &summary(self.summary).render()));
        if self.show_evals && !self.evals.is_empty() {
            let table = eval::of_job(self.evals, style);
            out.push_str(&style.section("Evaluations", &table.render()));
        }
        let failure = self.placement_failure(style);
        if !failure.is_empty() {
            let body = format!("{}\n", failure.join("\n"));
            out.push_str(&style.section("Placement Failure", &body));
        }
        let attempts = self.future_attempts(style);
        if !attempts.is_empty() {
            let body = attempts.render();
            out.push_str(&style.section("Future Rescheduling Attempts", &body));
        }
        if let Some(latest) = self.latest_deployment {
            let body = deployment::latest(latest, style);
            out.push_str(&style.section("Latest Deployment", &body));
        }
        let body = alloc::section(self.allocs, style);
        out.push_str(&style.section("Allocations", &body));
        out
    }

    /// Returns the reasons of pending placements.
    fn placement_failure(&self, style: &Style) -> Vec<String> {
        let newest = eval::newest_first(self.evals);
        let Some(blocked) = newest.iter().find(|eval| eval.status == "blocked") else {
            return self.held_back(style);
        };
        let lines = eval::failures_to_explain(blocked, style);
        if !lines.is_empty() {
            return lines;
        }
        // Some schedulers leave the reasons with the evaluation that could not place everything.
        let cause = newest
            .iter()
            .find(|eval| eval.blocked_eval_id == blocked.id);
        cause
            .map(|eval| eval::failures_to_explain(eval, style))
            .unwrap_or_default()
    }

    /// Returns the groups that a deployment holds back.
    fn held_back(&self, style: &Style) -> Vec<String> {
        let hold = DeploymentHold::find(self.job, self.latest_deployment, self.allocs);
        hold.map(|hold| hold.lines(style)).unwrap_or_default()
    }

    /// Tells whether a failed allocation is not replaced, because its deployment failed.
    fn is_given_up(&self, alloc: &v1::Allocation) -> bool {
        self.latest_deployment.is_some_and(|deployment| {
            deployment.status == "failed"
                && deployment.job_version == self.job.version()
                && deployment.id == alloc.deployment_id
        })
    }

    /// Returns the task groups with a delayed reschedule, and its time.
    fn future_attempts(&self, style: &Style) -> Table {
        let waiting: HashMap<&str, &v1::Evaluation> = self
            .evals
            .iter()
            .filter(|eval| eval.status == "pending" && eval.wait_until_ns > style.times.now_ns)
            .map(|eval| (eval.id.as_str(), eval))
            .collect();
        let mut rows: Vec<(&str, &v1::Evaluation)> = self
            .allocs
            .iter()
            .filter(|alloc| !self.is_given_up(alloc))
            .filter_map(|alloc| {
                let eval = waiting.get(alloc.followup_eval_id.as_str())?;
                Some((alloc.task_group.as_str(), *eval))
            })
            .collect();
        rows.sort_by(|(a, at), (b, bt)| {
            (a, at.wait_until_ns, &at.id).cmp(&(b, bt.wait_until_ns, &bt.id))
        });
        rows.dedup_by(|(a, at), (b, bt)| a == b && at.id == bt.id);
        let mut table = Table::new(["Task Group", "Eval ID", "Eval Time"]);
        for (group, eval) in rows {
            let when = style.time(eval.wait_until_ns);
            table.row([group.to_owned(), style.id(&eval.id), when]);
        }
        table
    }
}

fn summary(summary: &v1::JobSummary) -> Table {
    let mut table = Table::new([
        "Task Group",
        "Queued",
        "Starting",
        "Running",
        "Failed",
        "Complete",
        "Lost",
        "Unknown",
    ]);
    for (group, counts) in sorted(&summary.task_groups) {
        let counts = [
            counts.queued,
            counts.starting,
            counts.running,
            counts.failed,
            counts.complete,
            counts.lost,
            counts.unknown,
        ];
        let cells = std::iter::once(group.to_owned());
        table.row(cells.chain(counts.iter().map(ToString::to_string)));
    }
    table
}
