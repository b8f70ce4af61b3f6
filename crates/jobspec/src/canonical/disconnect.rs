//! The disconnect block: allocations on a disconnected node.

use model::job::{DisconnectStrategy, JobType, ReconcileChoice};

use super::validation::{Path, Validation};

const CHOICES: [(&str, ReconcileChoice); 4] = [
    ("best_score", ReconcileChoice::BestScore),
    ("keep_original", ReconcileChoice::KeepOriginal),
    ("keep_replacement", ReconcileChoice::KeepReplacement),
    ("longest_running", ReconcileChoice::LongestRunning),
];

pub(super) fn disconnect(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::DisconnectStrategy>,
    job_type: JobType,
) -> Option<DisconnectStrategy> {
    let spec = spec?;
    let path = path.block("disconnect");
    let negative = "lost_after cannot be a negative duration: leave it out for none";
    let lost_after = check
        .signed_duration(path.field("lost_after"), spec.lost_after.as_ref(), negative)
        // Zero means lost at once, as does the absent attribute.
        .filter(|duration| !duration.is_zero());
    let negative = "stop_on_client_after cannot be a negative duration: leave it out for never";
    let field = path.field("stop_on_client_after");
    let stop_on_client_after =
        check.signed_duration(field.clone(), spec.stop_on_client_after.as_ref(), negative);
    if lost_after.is_some() && stop_on_client_after.is_some() {
        let message = "Disconnect cannot be configured with both lost_after and stop_after: \
                       remove lost_after or stop_on_client_after";
        check.error(&path, message);
    }
    if stop_on_client_after.is_some() && job_type.is_per_node() {
        let message = "stop_after can only be used with service or batch job types: remove \
                       stop_on_client_after";
        check.error(field, message);
    }
    Some(DisconnectStrategy {
        lost_after,
        stop_on_client_after,
        replace: spec.replace.unwrap_or(true),
        reconcile: check.choice(
            path.field("reconcile"),
            spec.reconcile.as_deref().filter(|text| !text.is_empty()),
            &CHOICES,
            ReconcileChoice::BestScore,
            |given| {
                format!(
                    "reconcile option is invalid: {given}: use best_score, keep_original, \
                     keep_replacement or longest_running",
                )
            },
        ),
    })
}
