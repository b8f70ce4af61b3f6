//! Versions of a job.

use proto::v1;

use super::{Style, diff};
use crate::output::fields::Fields;

/// Returns one version of a job's history, with its diff.
pub(crate) fn version(job: &v1::Job, changes: Option<&v1::JobDiff>, style: &Style) -> String {
    let mut fields = Fields::new();
    fields
        .add("Version", job.version().to_string())
        .add("Stable", job.stable().to_string())
        .add("Submit Date", style.times.exact(job.submit_time_ns()));
    if let Some(tag) = &job.version_tag {
        fields
            .add("Tag Name", tag.name.as_str())
            .add_some("Tag Description", tag.description.as_str());
    }
    let mut text = fields.render();
    if let Some(changes) = changes {
        text.push_str(&style.section("Diff", &diff::job(changes, style)));
    }
    text
}
