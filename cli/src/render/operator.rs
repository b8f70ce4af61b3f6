//! The suite itself.

use proto::v1;

use crate::output::table::Table;

pub(crate) fn leaders(leaders: &[v1::Leader]) -> Table {
    let mut table = Table::new(["Service", "Address", "Replica", "Term"]);
    for leader in leaders {
        table.row([
            leader.service.clone(),
            leader.address.clone(),
            leader.replica.clone(),
            leader.term.to_string(),
        ]);
    }
    table
}
