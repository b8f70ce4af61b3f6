//! Metadata of a node.

use std::collections::HashMap;

use proto::v1;

use super::{Style, sorted};
use crate::output::NONE;
use crate::output::fields::Fields;

/// Returns all metadata, that set while the node runs, and that of its settings.
pub(crate) fn sections(meta: &v1::NodeMeta, style: &Style) -> String {
    let mut out = style.colour.bold("All Meta");
    out.push('\n');
    out.push_str(&fields(&meta.merged, &[]));
    out.push_str(&style.section("Dynamic Meta", &fields(&meta.dynamic, &meta.removed)));
    out.push_str(&style.section("Static Meta", &fields(&meta.r#static, &[])));
    out
}

fn fields(meta: &HashMap<String, String>, removed: &[String]) -> String {
    let mut fields = Fields::new();
    for (name, value) in sorted(meta) {
        fields.add(name, value.as_str());
    }
    for name in removed {
        fields.add(name, "<unset>");
    }
    if meta.is_empty() && removed.is_empty() {
        return format!("{NONE}\n");
    }
    fields.render()
}
