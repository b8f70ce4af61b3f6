//! Roles of services in certificates.

use identity::Role;

/// Returns the role of the service with this name; `None` for a process that is none of them.
pub fn role_of(service: &str) -> Option<Role> {
    Some(match service {
        "api-gateway" => Role::Gateway,
        "eval-broker" => Role::Broker,
        "scheduler-worker" => Role::Worker,
        "plan-applier" => Role::Applier,
        "deployment-watcher" => Role::Watcher,
        "cluster-controller" => Role::Controller,
        "client-node" => Role::Node,
        _ => return None,
    })
}
