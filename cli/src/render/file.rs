//! Files of allocations.

use proto::v1;

use super::Style;
use crate::output::size::bytes;
use crate::output::table::Table;

/// Returns the table of files; `machine`: sizes in bytes and exact times.
pub(crate) fn table(files: &[v1::FileInfo], machine: bool, style: &Style) -> String {
    let mut table = Table::new(["Mode", "Size", "Modified Time", "Name"]);
    for file in files {
        let size = match machine {
            true => file.size.to_string(),
            false => bytes(file.size),
        };
        let is_open = file.is_dir && !file.name.ends_with('/');
        let name = format!("{}{}", file.name, if is_open { "/" } else { "" });
        let time = style
            .times
            .either(file.modified_at_ns, machine || style.verbose);
        table.row([file.mode.clone(), size, time, name]);
    }
    table.render()
}
