//! Plans whose verification is quick.

use model::Plan;

/// Nodes, and placements, of a plan whose verification takes some ten microseconds.
const QUICK_PLAN: (usize, usize) = (16, 64);

/// Tells whether the verification of a plan takes less than the way to another thread and back.
pub fn is_quick(plan: &Plan) -> bool {
    let nodes = plan.placements.len() + plan.stops.len() + plan.preemptions.len();
    nodes <= QUICK_PLAN.0 && plan.placement_count() <= QUICK_PLAN.1
}

#[cfg(test)]
mod tests {
    use model::NodeId;
    use test_kit::builders;

    use super::*;

    fn plan(nodes: u128, placements: u128) -> Plan {
        let job = builders::service("web", 1);
        let mut plan = builders::plan(&builders::evaluation(1, &job));
        for number in 0..placements {
            let node_id = NodeId::from_random(number % nodes);
            let alloc = builders::allocation(number, &job, node_id);
            plan.placements.entry(node_id).or_default().push(alloc);
        }
        plan
    }

    #[test]
    fn a_plan_is_quick_up_to_a_number_of_nodes_and_of_placements() {
        for (nodes, placements, expected) in [
            (1, 1, true),
            (16, 64, true),
            (17, 17, false),
            (1, 65, false),
        ] {
            assert_eq!(
                is_quick(&plan(nodes, placements)),
                expected,
                "{nodes} {placements}"
            );
        }
    }
}
