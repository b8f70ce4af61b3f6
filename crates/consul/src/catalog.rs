//! Answers of the catalog and of health queries.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::agent::{AgentCheck, AgentService, CheckState, or_default};

/// A node of the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Node {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "Node")]
    pub name: String,
    pub address: String,
    pub datacenter: String,
    #[serde(deserialize_with = "or_default")]
    pub tagged_addresses: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub meta: BTreeMap<String, String>,
}

/// An instance of a service with its node and checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceEntry {
    pub node: Node,
    pub service: AgentService,
    #[serde(deserialize_with = "or_default")]
    pub checks: Vec<AgentCheck>,
}

impl ServiceEntry {
    /// The worst state of the checks of the instance and of its node; passing without any. Maintenance is a
    /// check of its own.
    pub fn status(&self) -> &'static str {
        let maintenance = |check: &&AgentCheck| {
            check.id == "_node_maintenance" || check.id.starts_with("_service_maintenance:")
        };
        if self.checks.iter().any(|check| maintenance(&check)) {
            return "maintenance";
        }
        let worst = self.checks.iter().map(|check| check.status).max();
        match worst.unwrap_or(CheckState::Passing) {
            CheckState::Passing => "passing",
            CheckState::Warning => "warning",
            CheckState::Critical => "critical",
        }
    }
}

/// A node with its services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeServices {
    pub node: Node,
    /// Id -> service.
    #[serde(deserialize_with = "or_default")]
    pub services: BTreeMap<String, AgentService>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_check_counts() {
        let entry = |checks: &[(&str, CheckState)]| ServiceEntry {
            checks: checks
                .iter()
                .map(|(id, status)| AgentCheck {
                    id: (*id).to_owned(),
                    status: *status,
                    ..AgentCheck::default()
                })
                .collect(),
            ..ServiceEntry::default()
        };
        use CheckState::{Critical, Passing, Warning};
        for (checks, want) in [
            (&[][..], "passing"),
            (&[("serfHealth", Passing), ("c", Warning)], "warning"),
            (&[("serfHealth", Critical), ("c", Passing)], "critical"),
            (&[("_node_maintenance", Critical)], "maintenance"),
        ] {
            assert_eq!(entry(checks).status(), want);
        }
    }
}
