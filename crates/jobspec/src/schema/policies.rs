//! Policies: the restart block.

use hcl::schema::refused_argument;

use super::extra::Extra;

pub(super) const RESTART_POLICY: Extra = Extra {
    refused: &[refused_argument(
        "render_templates",
        "RenderTemplates",
        "remove it, there are no templates to render",
    )],
    ..Extra::of("RestartPolicy")
};
