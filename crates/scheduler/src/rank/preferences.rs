//! Preferences of a group: compiled affinities and spreads of the job, the group and its tasks.

use model::job::{Job, TaskGroup};
use model::{Affinity, Node, Spread};
use placement::{Check, Target};

/// The target that stands for all values that a spread does not name.
const ANY_OTHER: &str = "*";

/// A group's affinities and spreads.
#[derive(Clone, Debug)]
pub(crate) struct Preferences {
    affinities: Vec<(Check, f64)>,
    /// The sum of the absolute weights of the affinities; 0: there are none.
    affinity_weight: f64,
    pub(crate) spreads: Vec<SpreadRule>,
}

impl Preferences {
    pub(crate) fn new(job: &Job, group: &TaskGroup) -> Self {
        let of_tasks = group.tasks.iter().flat_map(|task| &task.affinities);
        let all = job
            .affinities
            .iter()
            .chain(&group.affinities)
            .chain(of_tasks);
        let weigh = |affinity: &Affinity| {
            let check = Check::from_parts(&affinity.left, affinity.operator, &affinity.right);
            (check, f64::from(affinity.weight))
        };
        let affinities: Vec<_> = all.map(weigh).collect();
        Self {
            affinity_weight: affinities.iter().map(|(_, weight)| weight.abs()).sum(),
            affinities,
            spreads: spreads(job, group),
        }
    }

    pub(crate) fn has_affinities(&self) -> bool {
        self.affinity_weight > 0.0
    }

    /// Tells whether affinities may differ between nodes of one kind.
    pub(crate) fn affinity_is_unique(&self) -> bool {
        self.affinities
            .iter()
            .any(|(check, _)| check.escapes_class())
    }

    /// Returns the affinity score of `node`, from −1 to 1; 0 without affinities.
    pub(crate) fn affinity(&self, node: &Node) -> f64 {
        if !self.has_affinities() {
            return 0.0;
        }
        let matching = self
            .affinities
            .iter()
            .filter(|(check, _)| check.passes(node));
        matching.map(|(_, weight)| weight).sum::<f64>() / self.affinity_weight
    }
}

/// A spread with its shares of the group's count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpreadRule {
    pub(crate) target: Target,
    /// Its share of the sum of weights.
    pub(crate) weight: f64,
    pub(crate) aim: SpreadGoal,
}

/// The distribution that a spread aims for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SpreadGoal {
    /// The same number on each value.
    Even,
    Shares {
        /// Value → desired number; an explicit `*` is in `others`.
        named: Vec<(String, f64)>,
        /// The desired number on each other value; `None`: none is desired.
        others: Option<f64>,
    },
}

/// Returns the spreads of the job and the group; of two over one attribute, the group's, which is
/// more specific. Spreads with weight 0 are dropped.
fn spreads(job: &Job, group: &TaskGroup) -> Vec<SpreadRule> {
    let is_own = |spread: &&Spread| {
        let own = group.spreads.iter();
        !own.into_iter().any(|own| own.attribute == spread.attribute)
    };
    let of_job = job.spreads.iter().filter(is_own);
    let all: Vec<_> = of_job
        .chain(&group.spreads)
        .filter(|spread| spread.weight > 0)
        .collect();
    let weights: f64 = all.iter().map(|spread| f64::from(spread.weight)).sum();
    all.into_iter()
        .map(|spread| SpreadRule {
            target: Target::parse(&spread.attribute),
            weight: f64::from(spread.weight) / weights,
            aim: aim(spread, group.count),
        })
        .collect()
}

fn aim(spread: &Spread, count: u32) -> SpreadGoal {
    if spread.targets.is_empty() {
        return SpreadGoal::Even;
    }
    let share = |percent: u32| f64::from(percent) / 100.0 * f64::from(count);
    let mut named = Vec::new();
    let mut others = None;
    let mut left = 100_u32;
    for target in &spread.targets {
        let percent = u32::from(target.percent);
        if target.value == ANY_OTHER {
            others = Some(share(percent));
        } else {
            named.push((target.value.clone(), share(percent)));
            left = left.saturating_sub(percent);
        }
    }
    // The rest of the targets goes to all other values. It is computed in percent, because sums of
    // shares are not exact.
    if others.is_none() && 0 < left && left < 100 {
        others = Some(share(left));
    }
    SpreadGoal::Shares { named, others }
}

#[cfg(test)]
mod tests {
    use model::{Operator, SpreadTarget};
    use test_kit::builders;

    use super::*;

    fn affinity(left: &str, right: &str, weight: i8) -> Affinity {
        Affinity {
            left: left.into(),
            operator: Operator::Equal,
            right: right.into(),
            weight,
        }
    }

    #[test]
    fn scenario_124_weights_of_matching_affinities_count() {
        let mut job = builders::service("web", 1);
        job.affinities = vec![
            affinity("${node.datacenter}", "dc1", 100),
            affinity("${node.datacenter}", "dc2", -100),
        ];
        job.task_groups[0].affinities = vec![affinity("${meta.rack}", "r1", 50)];
        job.task_groups[0].tasks[0].affinities = vec![affinity("${node.class}", "big", 50)];
        let preferences = Preferences::new(&job, &job.task_groups[0]);
        for (datacenter, rack, class, want) in [
            ("dc1", "r1", "", 0.5),
            ("dc2", "", "", -1.0 / 3.0),
            ("dc2", "r1", "", -1.0 / 6.0),
            ("dc1", "", "", 1.0 / 3.0),
            ("dc3", "", "", 0.0),
            ("dc1", "r1", "big", 2.0 / 3.0),
        ] {
            let mut node = builders::node(1);
            node.datacenter = datacenter.into();
            node.node_class = class.into();
            node.meta.insert("rack".into(), rack.into());
            let liked = preferences.affinity(&node);
            assert!((liked - want).abs() < 1e-12, "{datacenter} {rack}: {liked}");
        }
        assert!(!preferences.affinity_is_unique());
    }

    fn spread(attribute: &str, weight: u8, targets: &[(&str, u8)]) -> Spread {
        let target = |(value, percent): &(&str, u8)| SpreadTarget {
            value: (*value).into(),
            percent: *percent,
        };
        Spread {
            attribute: attribute.into(),
            weight,
            targets: targets.iter().map(target).collect(),
        }
    }

    #[test]
    fn the_groups_spread_over_an_attribute_holds_instead_of_the_jobs() {
        let mut job = builders::service("web", 10);
        job.spreads = vec![
            spread("${node.datacenter}", 100, &[]),
            spread("${meta.rack}", 50, &[]),
        ];
        job.task_groups[0].spreads = vec![
            spread("${node.datacenter}", 50, &[("dc1", 60)]),
            spread("${node.class}", 0, &[]),
        ];
        let rules = Preferences::new(&job, &job.task_groups[0]).spreads;
        let shown: Vec<_> = rules.iter().map(|rule| (rule.weight, &rule.aim)).collect();
        let shares = SpreadGoal::Shares {
            named: vec![("dc1".into(), 6.0)],
            others: Some(4.0),
        };
        assert_eq!(shown, [(0.5, &SpreadGoal::Even), (0.5, &shares)]);
    }

    #[test]
    fn the_share_left_over_by_targets_is_for_other_values() {
        let others = |targets: &[(&str, u8)]| match aim(&spread("x", 50, targets), 10) {
            SpreadGoal::Shares { others, .. } => others,
            SpreadGoal::Even => panic!("it has targets"),
        };
        assert_eq!(others(&[("dc1", 80)]), Some(2.0));
        assert_eq!(others(&[("dc1", 80), ("dc2", 20)]), None);
        assert_eq!(others(&[("dc1", 80), ("*", 5)]), Some(0.5));
        assert_eq!(others(&[("dc1", 0)]), None);
        // As doubles, these shares of 10 add up to a little less than 10.
        assert_eq!(others(&[("dc1", 1), ("dc2", 5), ("dc3", 94)]), None);
    }
}
