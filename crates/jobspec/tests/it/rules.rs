//! Every rule of a valid job: one row breaks it, and has the expected error and its field.

mod action;
mod artifact;
mod driver;
mod group;
mod job;
mod launches;
mod policies;
mod rank;
mod resources;
mod service;
mod task;
mod template;
mod vault;
mod volume;

use jobspec::canonicalise;

use crate::support::{NOW, file, spec};

/// Further lines in job, group and task; the field, with `$g` and `$t` for those of the group and
/// of the task; a part of the message.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

fn check(rows: &[Row]) {
    for (job, group, task, field, message) in rows {
        let spec = spec(&file(job, group, task));
        let errors = canonicalise(&spec, NOW).err().unwrap_or_default().0;
        let field = field
            .replace("$t", "$g.task[\"t\"]")
            .replace("$g", "group[\"g\"]");
        let found = errors
            .iter()
            .any(|error| error.field == field && error.message.contains(message));
        assert!(found, "want {field}: {message}\ngot {errors:#?}");
        assert_eq!(errors.len(), 1, "one rule broken, one error: {errors:#?}");
        assert!(
            errors[0].message.len() > message.len(),
            "no fix in {}",
            errors[0].message
        );
    }
}
