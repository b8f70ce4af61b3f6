//! Repeatable ids from a seed.

use model::{AllocId, DeploymentId, EvalId, NodeId};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Draws ids; each kind from a generator of its own, so that one more of one kind does not shift
/// the others.
#[derive(Debug)]
pub struct SeededIds {
    evals: StdRng,
    allocs: StdRng,
    nodes: StdRng,
    deployments: StdRng,
}

impl SeededIds {
    pub fn new(seed: u64) -> Self {
        let mut root = StdRng::seed_from_u64(seed);
        let mut child = || StdRng::from_rng(&mut root);
        Self {
            evals: child(),
            allocs: child(),
            nodes: child(),
            deployments: child(),
        }
    }

    pub fn eval(&mut self) -> EvalId {
        EvalId::from_random(self.evals.random())
    }

    pub fn alloc(&mut self) -> AllocId {
        AllocId::from_random(self.allocs.random())
    }

    pub fn node(&mut self) -> NodeId {
        NodeId::from_random(self.nodes.random())
    }

    pub fn deployment(&mut self) -> DeploymentId {
        DeploymentId::from_random(self.deployments.random())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_of_one_kind_does_not_shift_the_others() {
        let (mut first, mut second) = (SeededIds::new(7), SeededIds::new(7));
        second.eval();
        assert_eq!(first.alloc(), second.alloc());
        assert_ne!(first.eval(), second.eval());
    }
}
