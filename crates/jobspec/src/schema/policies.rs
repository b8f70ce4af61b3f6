//! What happens when things change or fail: update, migrate, restart, reschedule, disconnect.

use super::{Ignored, Kind, Schema, attribute, plain, refused_argument};

pub(super) static UPDATE: Schema = plain(
    "update",
    &[
        attribute("max_parallel", "MaxParallel", Kind::Whole),
        attribute("health_check", "HealthCheck", Kind::Text),
        attribute("min_healthy_time", "MinHealthyTime", Kind::Span),
        attribute("healthy_deadline", "HealthyDeadline", Kind::Span),
        attribute("progress_deadline", "ProgressDeadline", Kind::Span),
        attribute("auto_revert", "AutoRevert", Kind::Flag),
        attribute("auto_promote", "AutoPromote", Kind::Flag),
        attribute("canary", "Canary", Kind::Whole),
        attribute("stagger", "Stagger", Kind::Span),
    ],
);

pub(super) static MIGRATE: Schema = plain(
    "migrate",
    &[
        attribute("max_parallel", "MaxParallel", Kind::Whole),
        attribute("health_check", "HealthCheck", Kind::Text),
        attribute("min_healthy_time", "MinHealthyTime", Kind::Span),
        attribute("healthy_deadline", "HealthyDeadline", Kind::Span),
    ],
);

pub(super) static RESTART: Schema = Schema {
    name: "restart",
    label: None,
    attributes: &[
        attribute("attempts", "Attempts", Kind::Whole),
        attribute("interval", "Interval", Kind::Span),
        attribute("delay", "Delay", Kind::Span),
        attribute("mode", "Mode", Kind::Text),
    ],
    blocks: &[],
    refused: &[refused_argument(
        "render_templates",
        "RenderTemplates",
        "remove it, there are no templates to render",
    )],
    ignored: &[] as &[Ignored],
    finish: None,
};

pub(super) static RESCHEDULE: Schema = plain(
    "reschedule",
    &[
        attribute("attempts", "Attempts", Kind::Whole),
        attribute("interval", "Interval", Kind::Span),
        attribute("delay", "Delay", Kind::Span),
        attribute("delay_function", "DelayFunction", Kind::Text),
        attribute("max_delay", "MaxDelay", Kind::Span),
        attribute("unlimited", "Unlimited", Kind::Flag),
    ],
);

pub(super) static DISCONNECT: Schema = plain(
    "disconnect",
    &[
        attribute("lost_after", "LostAfter", Kind::Span),
        attribute("stop_on_client_after", "StopOnClientAfter", Kind::Span),
        attribute("replace", "Replace", Kind::Flag),
        attribute("reconcile", "Reconcile", Kind::Text),
    ],
);
