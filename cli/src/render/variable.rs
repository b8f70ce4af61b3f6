//! Variables.

use std::fmt::Write as _;

use proto::v1;

use super::{Style, sorted};
use crate::output::fields::Fields;
use crate::output::table::Table;

pub(crate) fn table(variables: &[v1::Variable], style: &Style) -> Table {
    let is_any_locked = variables.iter().any(|variable| variable.lock.is_some());
    let mut table = if is_any_locked {
        Table::new(["Namespace", "Path", "Last Updated", "Lock ID"])
    } else {
        Table::new(["Namespace", "Path", "Last Updated"])
    };
    for variable in variables {
        let mut row = vec![
            variable.namespace.clone(),
            variable.path.clone(),
            style.time(variable.modify_time_ns),
        ];
        if is_any_locked {
            row.push(lock_id(variable).to_owned());
        }
        table.row(row);
    }
    table
}

/// The ID of its lock; empty: it is not locked.
fn lock_id(variable: &v1::Variable) -> &str {
    variable.lock.as_ref().map_or("", |lock| &lock.lock_id)
}

/// One path a line.
pub(crate) fn paths(variables: &[v1::Variable]) -> String {
    let paths: Vec<_> = variables.iter().map(|it| it.path.as_str()).collect();
    paths.join("\n")
}

/// A variable with its items.
pub(crate) fn status(variable: &v1::Variable, style: &Style) -> String {
    let mut fields = Fields::new();
    fields
        .add("Namespace", variable.namespace.as_str())
        .add("Path", variable.path.as_str())
        .add("Create Time", style.time(variable.create_time_ns));
    if variable.modify_time_ns != variable.create_time_ns {
        fields.add("Modify Time", style.time(variable.modify_time_ns));
    }
    fields.add("Check Index", variable.modify_index.to_string());
    if variable.lock.is_some() {
        fields.add("Lock ID", lock_id(variable));
    }
    let mut out = fields.render();
    let mut items = Fields::new();
    for (name, value) in sorted(&variable.items) {
        items.add(name, value.as_str());
    }
    out.push_str(&style.section("Items", &items.render()));
    out
}

/// A variable as a file for `var put`.
pub(crate) fn hcl(variable: &v1::Variable) -> String {
    let mut out = String::new();
    let fields = [("namespace", &variable.namespace), ("path", &variable.path)];
    for (name, value) in fields {
        let _ = writeln!(out, "{name} = {}", quoted(value));
    }
    let _ = writeln!(
        out,
        "modify_index = {}\n\nitems = {{",
        variable.modify_index
    );
    for (name, value) in sorted(&variable.items) {
        let _ = writeln!(out, "  {} = {}", quoted(name), quoted(value));
    }
    out.push('}');
    out
}

/// A text of HCL: that of JSON, in which nothing is interpolated.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace("${", "$${").replace("%{", "%%{")
}
