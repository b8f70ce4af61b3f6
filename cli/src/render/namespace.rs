//! Namespaces.

use proto::v1;

use super::{Style, sorted};
use crate::output::fields::Fields;
use crate::output::table::Table;

pub(crate) fn table(namespaces: &[v1::Namespace]) -> Table {
    let mut table = Table::new(["Name", "Description"]);
    for namespace in namespaces {
        table.row([namespace.name.clone(), namespace.description.clone()]);
    }
    table
}

/// One namespace: its header, metadata and rules.
pub(crate) fn status(namespace: &v1::Namespace, style: &Style) -> String {
    let mut fields = Fields::new();
    let capabilities = namespace.capabilities.clone().unwrap_or_default();
    let enabled = match capabilities.enabled_task_drivers.join(", ") {
        none if none.is_empty() => "*".to_owned(),
        some => some,
    };
    fields
        .add("Name", namespace.name.as_str())
        .add("Description", namespace.description.as_str())
        .add("Enabled Drivers", enabled)
        .add(
            "Disabled Drivers",
            capabilities.disabled_task_drivers.join(", "),
        );
    let mut out = fields.render();
    let mut meta = Fields::new();
    for (key, value) in sorted(&namespace.meta) {
        meta.add(key, value.as_str());
    }
    if !meta.is_empty() {
        out.push_str(&style.section("Metadata", &meta.render()));
    }
    let Some(rules) = &namespace.node_pool_configuration else {
        return out;
    };
    let mut fields = Fields::new();
    let default = match rules.default.as_str() {
        "" => "default",
        some => some,
    };
    fields.add("Default", default);
    if let Some(allowed) = &rules.allowed {
        fields.add("Allowed", allowed.patterns.join(", "));
    }
    fields.add_some("Denied", rules.denied.join(", "));
    out.push_str(&style.section("Node Pool Configuration", &fields.render()));
    out
}
