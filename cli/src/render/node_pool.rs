//! Node pools.

use proto::v1;

use super::{Style, sorted};
use crate::output::fields::Fields;
use crate::output::table::Table;

pub(crate) fn table(pools: &[v1::NodePool]) -> Table {
    let mut table = Table::new(["Name", "Description"]);
    for pool in pools {
        table.row([pool.name.clone(), pool.description.clone()]);
    }
    table
}

/// One pool: its description, its metadata and its scheduler configuration.
pub(crate) fn info(pool: &v1::NodePool, style: &Style) -> String {
    let mut fields = Fields::new();
    fields
        .add("Name", pool.name.as_str())
        .add("Description", pool.description.as_str());
    let mut out = fields.render();
    let mut meta = Fields::new();
    for (key, value) in sorted(&pool.meta) {
        meta.add(key, value.as_str());
    }
    let meta = if meta.is_empty() {
        "No metadata\n".to_owned()
    } else {
        meta.render()
    };
    out.push_str(&style.section("Metadata", &meta));
    let Some(of_pool) = &pool.scheduler_configuration else {
        let same = "As in the rest of the cluster\n";
        out.push_str(&style.section("Scheduler Configuration", same));
        return out;
    };
    let mut fields = Fields::new();
    let memory = of_pool.memory_oversubscription_enabled;
    fields
        .add_some("Scheduler Algorithm", of_pool.scheduler_algorithm.as_str())
        .add_some(
            "Memory Oversubscription",
            memory.map(|it| it.to_string()).unwrap_or_default(),
        );
    out.push_str(&style.section("Scheduler Configuration", &fields.render()));
    out
}
