//! Signing keys of identity tokens.

use proto::v1;

use super::Style;
use crate::output::table::Table;

pub(crate) fn table(keys: &[v1::SigningKey], style: &Style) -> Table {
    let mut table = Table::new([
        "Key ID",
        "State",
        "Algorithm",
        "Active From",
        "Published Until",
    ]);
    for key in keys {
        let until = match key.published_until_ns {
            0 => String::new(),
            until => style.time(until),
        };
        table.row([
            style.id(&key.id),
            key.state.clone(),
            key.algorithm.clone(),
            style.time(key.active_from_ns),
            until,
        ]);
    }
    table
}
