//! A dry run: the diff, the scheduler's decisions, and the command that runs exactly this plan.

use std::collections::BTreeMap;

use proto::v1;

use super::deployment_hold::DeploymentHold;
use super::{Style, diff, metric, sorted};
use crate::output::indented;
use crate::output::table::Table;

/// The number of preempted allocations from which on a table by job replaces the list. Source: Nomad.
const PREEMPTED_LISTED: usize = 10;

/// The result of a dry run.
pub(crate) struct Plan<'a> {
    pub(crate) answer: &'a v1::PlanJobResponse,
    pub(crate) job_type: &'a str,
    /// The deployment that delays the placement of the registered version, and would delay the new
    /// one.
    pub(crate) hold: Option<&'a DeploymentHold<'a>>,
    pub(crate) show_diff: bool,
    /// The command that runs the planned job.
    pub(crate) run: &'a str,
}

impl Plan<'_> {
    pub(crate) fn render(&self, style: &Style) -> String {
        let mut text = String::new();
        if let Some(diff) = self.answer.diff.as_ref().filter(|_| self.show_diff) {
            text.push_str(&diff::job(diff, style));
            text.push('\n');
        }
        text.push_str(&style.colour.bold("Scheduler dry-run:"));
        text.push('\n');
        text.push_str(&self.placements(style));
        if self.answer.next_periodic_launch_ns > 0 {
            let when = super::job::due(self.answer.next_periodic_launch_ns, style);
            let line = format!("- If submitted now, next periodic launch would be at {when}.");
            text.push_str(&format!("{}\n", style.colour.green(&line)));
        }
        text.push_str(&self.preemptions(style));
        text.push_str(&self.hint(style));
        text
    }

    fn placements(&self, style: &Style) -> String {
        let failed = &self.answer.failed_task_groups;
        let hold = self.hold.map(|hold| {
            let line = format!("- WARNING: {}.", hold.sentence(style));
            format!("{}\n", style.colour.yellow(&line))
        });
        if failed.is_empty() {
            let all = || style.colour.green("- All tasks successfully allocated.") + "\n";
            return hold.unwrap_or_else(all);
        }
        let warning = if matches!(self.job_type, "system" | "sysbatch") {
            "- WARNING: Failed to place allocations on all nodes."
        } else {
            "- WARNING: Failed to place all allocations."
        };
        let mut text = hold.unwrap_or_default();
        text.push_str(&format!("{}\n", style.colour.yellow(warning)));
        for (group, why) in sorted(failed) {
            let block = metric::group(group, why).join("\n");
            text.push_str(&indented(&block, 2));
        }
        text
    }

    fn preemptions(&self, style: &Style) -> String {
        let annotations = self.answer.annotations.as_ref();
        let preempted = annotations.map_or(&[][..], |all| &all.preempted_allocations);
        if preempted.is_empty() {
            return String::new();
        }
        let table = if preempted.len() < PREEMPTED_LISTED {
            let mut table = Table::new(["Alloc ID", "Job ID", "Task Group"]);
            for alloc in preempted {
                table.row([&style.id(&alloc.id), &alloc.job_id, &alloc.task_group]);
            }
            table
        } else {
            let mut by_job = BTreeMap::<[&str; 3], u64>::new();
            for alloc in preempted {
                let job = [alloc.job_id.as_str(), &alloc.namespace, &alloc.job_type];
                *by_job.entry(job).or_default() += 1;
            }
            let mut table = Table::new(["Job ID", "Namespace", "Job Type", "Preemptions"]);
            for ([job_id, namespace, job_type], count) in by_job {
                table.row([job_id, namespace, job_type, &count.to_string()]);
            }
            table
        };
        style.section("Preemptions:", &table.render())
    }

    fn hint(&self, style: &Style) -> String {
        let index = format!("Job Modify Index: {}", self.answer.job_modify_index);
        format!(
            "\n{}\n\
             To submit the job with version verification:\n\
             \n\
             {}\n\
             \n\
             The command is refused if the job has changed since this plan.\n",
            style.colour.bold(&index),
            self.run,
        )
    }
}
