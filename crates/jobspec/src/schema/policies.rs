//! Policies: the restart block.

use hcl::schema::refused_argument;

use super::extra::Extra;

pub(super) const RESTART_POLICY: Extra = Extra {
    refused: &[refused_argument(
        "render_templates",
        "RenderTemplates",
        "remove it, each start of a task renders its templates",
    )],
    ..Extra::of("RestartPolicy")
};
