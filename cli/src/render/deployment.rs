//! Deployments.

use proto::v1;

use super::{Style, sorted};
use crate::output::fields::Fields;
use crate::output::table::Table;

pub(crate) fn table(deployments: &[v1::Deployment], style: &Style) -> Table {
    let mut table = Table::new(["ID", "Job ID", "Job Version", "Status", "Description"]);
    for deployment in deployments {
        table.row([
            style.id(&deployment.id),
            deployment.job_id.clone(),
            deployment.job_version.to_string(),
            deployment.status.clone(),
            deployment.status_description.clone(),
        ]);
    }
    table
}

/// Returns the header of a deployment and the progress of its task groups.
pub(crate) fn body(deployment: &v1::Deployment, style: &Style) -> String {
    let mut fields = Fields::new();
    fields
        .add("ID", style.id(&deployment.id))
        .add("Job ID", deployment.job_id.as_str())
        .add("Namespace", deployment.namespace.as_str())
        .add("Job Version", deployment.job_version.to_string())
        .add("Status", deployment.status.as_str())
        .add("Description", deployment.status_description.as_str());
    format!("{}{}", fields.render(), deployed(deployment, style))
}

/// Returns the section of the latest deployment in `job status`.
pub(crate) fn latest(deployment: &v1::Deployment, style: &Style) -> String {
    let mut fields = Fields::new();
    fields
        .add("ID", style.id(&deployment.id))
        .add("Status", deployment.status.as_str())
        .add("Description", deployment.status_description.as_str());
    format!("{}{}", fields.render(), deployed(deployment, style))
}

/// Leaves out columns that no group uses.
fn deployed(deployment: &v1::Deployment, style: &Style) -> String {
    let groups = sorted(&deployment.task_groups);
    let any = |has: fn(&v1::DeploymentGroup) -> bool| groups.iter().any(|(_, group)| has(group));
    let reverts = any(|group| group.auto_revert);
    let canaries = any(|group| group.desired_canaries > 0);
    let deadlines = any(|group| {
        group
            .progress_deadline
            .is_some_and(|deadline| deadline.seconds > 0)
    });

    let columns = [
        ("Task Group", true),
        ("Auto Revert", reverts),
        ("Promoted", canaries),
        ("Desired", true),
        ("Canaries", canaries),
        ("Placed", true),
        ("Healthy", true),
        ("Unhealthy", true),
        ("Progress Deadline", deadlines),
    ];
    let shown = |columns: &[(&'static str, bool)]| -> Vec<&'static str> {
        columns
            .iter()
            .filter(|(_, shown)| *shown)
            .map(|(name, _)| *name)
            .collect()
    };
    let mut table = Table::new(shown(&columns));
    for (name, group) in groups {
        let promoted = match group.desired_canaries {
            0 => "N/A".to_owned(),
            _ => group.promoted.to_string(),
        };
        let cells = [
            name.to_owned(),
            group.auto_revert.to_string(),
            promoted,
            group.desired_total.to_string(),
            group.desired_canaries.to_string(),
            group.placed_allocs.to_string(),
            group.healthy_allocs.to_string(),
            group.unhealthy_allocs.to_string(),
            style.times.exact(group.require_progress_by_ns),
        ];
        let cells = cells.into_iter().zip(columns);
        table.row(cells.filter(|(_, (_, shown))| *shown).map(|(cell, _)| cell));
    }
    if table.is_empty() {
        return String::new();
    }
    style.section("Deployed", &table.render())
}
