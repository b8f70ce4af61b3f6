//! Repair of networks at an interval: new rules for of port mappings that other programs removed, and removal of
//! what agents without records left.

use std::fs;

use model::AllocId;
use tracing::{info, warn};

use super::Networks;
use crate::conflist::BRIDGE_NETWORK;
use crate::netns;
use crate::nft;

impl Networks {
    /// Maps the ports anew of networks whose elements are gone: another program may have flushed all
    /// rules, as a reload of a firewall does.
    pub fn repair(&self) {
        let ids = self.records.all();
        // Without networks the machine may have no nftables either.
        let Some(present) = (!ids.is_empty()).then(nft::comments).and_then(Result::ok) else {
            return;
        };
        for alloc_id in ids {
            let Some(record) = self
                .records
                .get(alloc_id)
                .filter(|record| !record.is_ending)
            else {
                continue;
            };
            let is_current = record.boot_id == self.settings.boot_id && record.list.is_some();
            let Some(done) = record.done.as_ref().filter(|_| is_current) else {
                continue;
            };
            if present.contains(&alloc_id.to_string()) {
                continue;
            }
            warn!(%alloc_id, "the port mappings are gone; another program has removed them");
            if let Err(error) = self.map_ports(&record, &done.status) {
                let error = service_kit::run::chain(&error);
                warn!(%alloc_id, error, "cannot map the ports of an allocation again");
            }
        }
    }

    /// Removes port mappings and leases of allocations without a namespace: those of agents that lost
    /// their records.
    pub fn sweep(&self) {
        let is_gone = |alloc_id: &str| match alloc_id.parse::<AllocId>() {
            Ok(alloc_id) => {
                !netns::is_pinned(&self.namespace(alloc_id), None) && self.owner(alloc_id).is_none()
            }
            Err(_) => false,
        };
        if nft::problem().is_none()
            && let Err(error) = nft::remove(is_gone)
        {
            let error = service_kit::run::chain(&error);
            warn!(
                error,
                "cannot remove port mappings of allocations that are gone"
            );
        }
        let leases = self
            .settings
            .config
            .run_dir
            .join("leases")
            .join(BRIDGE_NETWORK);
        for entry in fs::read_dir(leases).into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            if text.lines().next().is_some_and(is_gone) {
                info!(lease = %entry.path().display(), "removing a lease of an allocation that is gone");
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}
