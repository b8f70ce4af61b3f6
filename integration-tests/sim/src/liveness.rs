//! The oracle of liveness: a node with a sound way to the cluster-controller is not marked down.

use crate::checker::{Checker, NodeMark};
use crate::environment::{Environment, HostId, network};
use crate::suite::{SILENCE_LIMIT, Suite};

/// The time for which a path must be sound before a node on it may no longer be marked down, in
/// milliseconds: twice the silence after which it is. Within it, the node and the gateway give up
/// the calls that the last fault made hang, end their backoffs, and deliver a heartbeat.
const SOUND_FOR: u64 = 2 * SILENCE_LIMIT;

/// Watches the status of nodes, and the ways of their heartbeats.
pub(crate) struct Oracle {
    /// The term of the cluster-controller's leader, and the time at which it was first seen.
    term: Option<(u64, u64)>,
    /// True if no node may go down at all, however short the time for which its path has been
    /// sound.
    is_strict: bool,
}

impl Oracle {
    pub(crate) fn new(is_strict: bool) -> Self {
        Self {
            term: None,
            is_strict,
        }
    }

    /// Reports the nodes that were marked down although they were alive and had a sound way. To be
    /// called before the faults change.
    pub(crate) fn check(&mut self, environment: &Environment, suite: &Suite, checker: &Checker) {
        let now = environment.now();
        let term = checker.term(cluster_controller::SERVICE);
        let since = match self.term {
            Some((known, since)) if Some(known) == term => since,
            _ => now,
        };
        self.term = term.map(|term| (term, since));
        for mark in checker.take_node_marks() {
            let sound_since = sound_since(environment, suite, checker, &mark.node);
            let sound_since = sound_since.map(|sound| sound.max(since));
            let is_long = sound_since.is_some_and(|sound| sound + SOUND_FOR <= mark.at);
            if is_long || self.is_strict {
                let NodeMark { node, status, .. } = &mark;
                let since = sound_since.map_or("never".to_owned(), |at| format!("{at} ms"));
                let text = format!(
                    "{node} is {} at {} ms, and a way of its heartbeats is sound since {since}",
                    status.as_str(),
                    mark.at
                );
                checker.report_at(mark.revision, text);
            }
        }
    }
}

/// Returns since when the node and one of its ways to the cluster-controller have been sound; `None`:
/// none is at present.
fn sound_since(
    environment: &Environment,
    suite: &Suite,
    checker: &Checker,
    node: &str,
) -> Option<u64> {
    let host = |id: HostId| environment.host(id).sound_since();
    let mut nodes = suite.nodes.iter().map(|(id, _)| *id);
    let node = nodes.find(|id| environment.host(*id).name() == node)?;
    let leader = checker.leader(cluster_controller::SERVICE)?;
    let mut controllers = suite.controllers.iter().copied();
    let leader = controllers.find(|id| environment.address(*id) == leader)?;
    let ends = [
        host(node)?,
        host(leader)?,
        host(suite.etcd)?,
        network::sound_since(leader, suite.etcd)?,
    ];
    let way = |gateway: HostId| {
        let parts = [
            host(gateway)?,
            network::sound_since(node, gateway)?,
            network::sound_since(gateway, leader)?,
            network::sound_since(gateway, suite.etcd)?,
        ];
        parts.into_iter().max()
    };
    let best = suite
        .gateways
        .iter()
        .filter_map(|gateway| way(*gateway))
        .min()?;
    ends.into_iter().chain([best]).max()
}
