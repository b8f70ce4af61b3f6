//! The suite itself.

use proto::v1;

use crate::output::table::Table;

/// The services of which one replica leads; nothing moves while one of them has no leader.
const LED: [&str; 4] = [
    "cluster-controller",
    "deployment-watcher",
    "eval-broker",
    "plan-applier",
];

/// A service without a leader has a row as well: it is what somebody looks for.
pub(crate) fn leaders(leaders: &[v1::Leader]) -> Table {
    let mut table = Table::new(["Service", "Address", "Replica", "Term"]);
    let is_led = |service: &&str| leaders.iter().any(|leader| leader.service == *service);
    for service in LED.into_iter().filter(|service| !is_led(service)) {
        table.row([service, "<none>", "<none>", "<none>"].map(str::to_owned));
    }
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
