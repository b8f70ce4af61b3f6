//! Scripted faults: long cuts and stalls that random faults rarely produce, and never alone.

use crate::checker::Checker;
use crate::environment::{Environment, HostId, network};
use crate::suite::Suite;

/// The time of the first fault after the start of the workload, in milliseconds.
const BEGIN: u64 = 2_000;
/// Duration of a cut: several times the TTL and the grace of heartbeats together.
const CUT: u64 = 24_000;
/// Duration of a stall of the leader, and of the run after it. The leader keeps its lease of three
/// seconds; the stalls together are several times the TTL and the grace.
const STALL: (u64, u64) = (1_600, 900);

/// Faults that leave every node a way to the cluster-controller, so that none may go down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Script {
    /// One gateway and the cluster-controllers do not reach each other.
    RelayCut,
    /// The answers of the cluster-controllers do not reach one gateway.
    AnswersCut,
    /// One gateway and etcd do not reach each other.
    StoreCut,
    /// The cluster-controller's leader stalls again and again.
    LeaderStalls,
}

/// A script that is being played.
pub(crate) struct Played {
    script: Script,
    began: u64,
    cuts: Vec<(HostId, HostId)>,
    stalls_until: u64,
    has_cut: bool,
}

impl Played {
    pub(crate) fn new(script: Script, now: u64) -> Self {
        Self {
            script,
            began: now + BEGIN,
            cuts: Vec::new(),
            stalls_until: 0,
            has_cut: false,
        }
    }

    /// Injects and repairs the due faults.
    pub(crate) fn act(&mut self, environment: &mut Environment, suite: &Suite, checker: &Checker) {
        let now = environment.now();
        if now < self.began {
            return;
        }
        if now >= self.began + CUT {
            return self.heal();
        }
        let gateway = suite.gateways[0];
        match self.script {
            Script::RelayCut => self.cut(
                suite
                    .controllers
                    .iter()
                    .flat_map(|controller| [(gateway, *controller), (*controller, gateway)]),
            ),
            Script::AnswersCut => {
                self.cut(suite.controllers.iter().map(|from| (*from, gateway)));
            }
            Script::StoreCut => self.cut([(gateway, suite.etcd), (suite.etcd, gateway)]),
            Script::LeaderStalls => {
                let leader = checker.leader(cluster_controller::SERVICE);
                let mut controllers = suite.controllers.iter();
                let leader = controllers.find(|id| leader == Some(environment.address(**id)));
                if let Some(leader) = leader.filter(|_| now >= self.stalls_until) {
                    environment.pause(*leader, STALL.0);
                    self.stalls_until = now + STALL.0 + STALL.1;
                }
            }
        }
    }

    fn cut(&mut self, lines: impl IntoIterator<Item = (HostId, HostId)>) {
        if std::mem::replace(&mut self.has_cut, true) {
            return;
        }
        self.cuts = lines.into_iter().collect();
        for (from, to) in &self.cuts {
            network::cut(*from, *to);
        }
    }

    /// Repairs everything.
    pub(crate) fn heal(&mut self) {
        for (from, to) in self.cuts.drain(..) {
            network::repair(from, to);
        }
    }
}
