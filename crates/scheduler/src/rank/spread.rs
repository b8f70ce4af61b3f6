//! Boosts of a spread by value, updated as allocations come and go: an allocation changes one
//! value, sometimes all of them, and never a node.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use state::NodeTable;

use crate::rank::column::{Column, Names};
use crate::rank::preferences::{SpreadGoal, SpreadRule};

/// The boost of nodes without a value or with an undesired one: the lowest of all boosts.
const UNWANTED: f64 = -1.0;

/// Tells whether nodes of an even spread are grouped by the use of their values instead of by
/// value: there are few uses, whatever the number of values.
///
/// By value, a placement visits every value; by use, it moves the nodes of one value, which are few
/// when there are many values. Measured, both cost the same at 600 values on 2,000 nodes and at
/// 1,400 on 10,000. Tests have small clusters and have to cover both.
fn goes_by_count(values: usize, nodes: usize) -> bool {
    let weight_of_a_node = if cfg!(test) { 3 } else { 200 };
    values * values > weight_of_a_node * nodes
}

/// The number of nodes without a value.
const MISSING: u32 = 0;

/// The desired use of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Due {
    /// No value, or none desired on it.
    Nothing,
    /// This many allocations, more than 0.
    Share(f64),
    /// As many as on every other value.
    Even,
}

#[derive(Clone, Copy, Debug)]
struct Value {
    due: Due,
    /// The number of the group's allocations on its nodes.
    used: u32,
    /// The boost of its nodes.
    boost: f64,
}

/// The nodes whose boost a change of one value has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    None,
    /// The nodes with this key.
    Key(u32),
    All,
}

/// One spread of a group.
#[derive(Clone, Debug)]
pub(crate) struct SpreadUse {
    weight: f64,
    column: Column,
    values: Vec<Value>,
    /// Use → number of used values with it; only of an even spread.
    levels: BTreeMap<u32, u32>,
    by_count: bool,
    /// Value → positions of its nodes; empty unless nodes are grouped by use.
    nodes_of: FxHashMap<u32, Vec<usize>>,
}

impl SpreadUse {
    /// `used` are the positions of the nodes of the group's live allocations.
    pub(crate) fn new(
        rule: &SpreadRule,
        table: &NodeTable,
        used: impl Iterator<Item = usize>,
    ) -> Self {
        let (column, values) = match &rule.aim {
            SpreadGoal::Even => even_values(rule, table),
            SpreadGoal::Shares { named, others } => shares(rule, table, named, *others),
        };
        let is_even = rule.aim == SpreadGoal::Even;
        let mut spread = Self {
            weight: rule.weight,
            by_count: is_even && goes_by_count(values.len(), table.row_count()),
            column,
            values,
            levels: BTreeMap::new(),
            nodes_of: FxHashMap::default(),
        };
        for position in used {
            let value = spread.value_at(table, position);
            spread.values[value as usize].used += 1;
        }
        if is_even {
            for value in spread.values.iter().filter(|value| value.used > 0) {
                if value.due == Due::Even {
                    *spread.levels.entry(value.used).or_insert(0) += 1;
                }
            }
        }
        if spread.by_count {
            for position in 0..table.row_count() {
                let value = spread.value_at(table, position);
                spread.nodes_of.entry(value).or_default().push(position);
            }
        }
        spread.update_boosts();
        spread
    }

    /// Returns the number of the value that the node at `position` has.
    pub(crate) fn value_at(&self, table: &NodeTable, position: usize) -> u32 {
        self.column.get(position, table.row(position))
    }

    /// Tells whether all nodes of a kind always have the same key.
    pub(crate) fn is_shared(&self) -> bool {
        !self.by_count && !self.column.is_unique()
    }

    /// Returns the key of a kind's nodes; `None` unless they share it.
    pub(crate) fn key_of_kind(&self, kind: usize) -> Option<u32> {
        self.is_shared().then(|| self.column.of_kind(kind))?
    }

    /// Returns the key of a node: nodes with equal keys have equal boosts.
    pub(crate) fn key_at(&self, table: &NodeTable, position: usize) -> u32 {
        let value = self.value_at(table, position);
        if !self.by_count {
            return value;
        }
        match self.values[value as usize] {
            Value {
                due: Due::Even,
                used,
                ..
            } => used,
            _ => u32::MAX,
        }
    }

    /// Returns the boost of nodes with this key.
    pub(crate) fn boost(&self, key: u32) -> f64 {
        if !self.by_count {
            return self.values[key as usize].boost;
        }
        if key == u32::MAX {
            return UNWANTED;
        }
        self.weight * even_boost(key, self.range())
    }

    /// Returns the nodes whose key changes with the use of `value`; empty unless nodes are grouped
    /// by use.
    pub(crate) fn nodes_of(&self, value: u32) -> &[usize] {
        self.nodes_of.get(&value).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn add(&mut self, value: u32) -> Changed {
        let before = self.values[value as usize].used;
        self.set_used(value, before, before + 1)
    }

    pub(crate) fn remove(&mut self, value: u32) -> Changed {
        let before = self.values[value as usize].used;
        self.set_used(value, before, before.saturating_sub(1))
    }

    fn set_used(&mut self, number: u32, before: u32, after: u32) -> Changed {
        self.values[number as usize].used = after;
        match self.values[number as usize].due {
            Due::Nothing => Changed::None,
            Due::Share(desired) => {
                self.values[number as usize].boost = self.weight * share_boost(desired, after);
                Changed::Key(number)
            }
            Due::Even => {
                let range = self.range();
                self.move_level(before, after);
                if self.range() != range {
                    self.update_boosts();
                    return Changed::All;
                }
                if self.by_count {
                    // Its nodes get a new key instead.
                    return Changed::None;
                }
                self.values[number as usize].boost = self.weight * even_boost(after, range);
                Changed::Key(number)
            }
        }
    }

    fn move_level(&mut self, before: u32, after: u32) {
        if let Some(count) = self.levels.get_mut(&before) {
            *count -= 1;
            if *count == 0 {
                self.levels.remove(&before);
            }
        }
        if after > 0 {
            *self.levels.entry(after).or_insert(0) += 1;
        }
    }

    /// Returns the lowest and the highest use of used values; 0 without any.
    fn range(&self) -> (u32, u32) {
        let min = self.levels.first_key_value().map_or(0, |(used, _)| *used);
        let max = self.levels.last_key_value().map_or(0, |(used, _)| *used);
        (min, max)
    }

    fn update_boosts(&mut self) {
        let range = self.range();
        for value in &mut self.values {
            value.boost = match value.due {
                Due::Even => self.weight * even_boost(value.used, range),
                Due::Share(desired) => self.weight * share_boost(desired, value.used),
                Due::Nothing => UNWANTED,
            };
        }
    }
}

fn even_values(rule: &SpreadRule, table: &NodeTable) -> (Column, Vec<Value>) {
    let mut names = Names::default();
    let column = Column::new(table, &rule.target, |value| match value {
        Some(value) => names.number(value) + 1,
        None => MISSING,
    });
    let mut values = vec![value(Due::Even); names.len() + 1];
    values[MISSING as usize] = value(Due::Nothing);
    (column, values)
}

fn shares(
    rule: &SpreadRule,
    table: &NodeTable,
    named: &[(String, f64)],
    others: Option<f64>,
) -> (Column, Vec<Value>) {
    let of_others = u32::try_from(named.len() + 1).expect("percents add up to at most 100");
    let column = Column::new(table, &rule.target, |value| {
        let Some(value) = value else { return MISSING };
        let numbers = (1..).zip(named);
        let mut found = numbers.filter(|(_, (name, _))| **name == *value);
        found.next().map_or(of_others, |(number, _)| number)
    });
    let mut values = vec![value(Due::Nothing)];
    values.extend(named.iter().map(|(_, desired)| value(due(*desired))));
    values.push(value(others.map_or(Due::Nothing, due)));
    (column, values)
}

fn due(desired: f64) -> Due {
    if desired > 0.0 {
        Due::Share(desired)
    } else {
        Due::Nothing
    }
}

fn value(due: Due) -> Value {
    Value {
        due,
        used: 0,
        boost: UNWANTED,
    }
}

/// Returns the boost of values of an even spread with `used` allocations.
///
/// The range covers used values only, so an unused value is always below it.
fn even_boost(used: u32, (min, max): (u32, u32)) -> f64 {
    let (used, min, max) = (f64::from(used), f64::from(min), f64::from(max));
    if max == 0.0 {
        0.0
    } else if used == 0.0 {
        1.0
    } else if used > min {
        -bounded((used - min) / min)
    } else if min == max {
        -1.0
    } else {
        bounded((max - min) / min)
    }
}

/// Returns the boost for one more allocation of a value with `used` allocations of `desired`.
///
/// The excess over a share below one allocation is counted in allocations: relative to the share,
/// the first would use up nearly the whole range, and the second would hardly be worse.
fn share_boost(desired: f64, used: u32) -> f64 {
    let left = desired - f64::from(used + 1);
    if left < 0.0 {
        -bounded(-left / desired.max(1.0))
    } else {
        left / desired
    }
}

/// Returns `distance` unchanged up to one half, and ever slower growth below 1 beyond. Both parts
/// meet with equal slope.
fn bounded(distance: f64) -> f64 {
    if distance > 0.5 {
        1.0 - 0.25 / distance
    } else {
        distance
    }
}

/// Returns the boost of all spreads for nodes with these keys.
pub(crate) fn total(spreads: &[SpreadUse], keys: &[u32]) -> f64 {
    let boosts = spreads
        .iter()
        .zip(keys)
        .map(|(spread, key)| spread.boost(*key));
    boosts.sum()
}

#[cfg(test)]
mod tests {
    use model::{Job, Spread, SpreadTarget};
    use proptest::prelude::*;
    use state::{Change, Entity, Key, Snapshot, State};
    use test_kit::builders;

    use super::*;
    use crate::rank::preferences::Preferences;

    /// Nodes with these datacenters and racks; an empty rack is none.
    fn fleet(nodes: &[(&str, &str)]) -> Snapshot {
        let changes = (1..).zip(nodes).map(|(number, (datacenter, rack))| {
            let mut node = builders::node(number);
            node.datacenter = (*datacenter).into();
            if !rack.is_empty() {
                node.meta.insert("rack".into(), (*rack).into());
            }
            Change::Put {
                key: Key::Node(node.id),
                entity: Entity::Node(Box::new(node)),
                create_index: 1,
                modify_index: 1,
            }
        });
        State::from_list(1, changes.collect::<Vec<_>>()).snapshot()
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

    fn job(count: u32, spreads: Vec<Spread>) -> Job {
        let mut job = builders::service("web", count);
        job.spreads = spreads;
        job
    }

    /// Returns the boost of each node by all spreads, with allocations on the nodes at `used`.
    fn boosts(snapshot: &Snapshot, job: &Job, used: &[usize]) -> Vec<f64> {
        let table = snapshot.node_table();
        let rules = Preferences::new(job, &job.task_groups[0]).spreads;
        let made = |used: &[usize]| -> Vec<_> {
            rules
                .iter()
                .map(|rule| SpreadUse::new(rule, table, used.iter().copied()))
                .collect()
        };
        let tell = |spreads: &[SpreadUse]| -> Vec<f64> {
            (0..table.row_count())
                .map(|node| {
                    let boosts = spreads
                        .iter()
                        .map(|spread| spread.boost(spread.key_at(table, node)));
                    boosts.sum()
                })
                .collect()
        };
        let boosts = tell(&made(used));
        // One after the other comes to the same as all at once, and so does taking one back.
        let mut spreads = made(&[]);
        for spread in &mut spreads {
            for node in used.iter().chain(used) {
                spread.add(spread.value_at(table, *node));
            }
            for node in used {
                spread.remove(spread.value_at(table, *node));
            }
        }
        assert_eq!(tell(&spreads), boosts);
        boosts
    }

    fn assert_close(actual: &[f64], want: &[f64]) {
        let close = actual
            .iter()
            .zip(want)
            .all(|(a, b)| (a - b).abs() < 0.000_1);
        assert!(
            actual.len() == want.len() && close,
            "{actual:?}, not {want:?}"
        );
    }

    #[test]
    fn scenario_125_a_share_runs_out() {
        let fleet = fleet(&[("dc1", ""), ("dc2", "")]);
        let job = job(10, vec![spread("${node.datacenter}", 100, &[("dc1", 80)])]);
        assert_close(&boosts(&fleet, &job, &[0, 0]), &[0.625, 0.5]);
        assert_close(&boosts(&fleet, &job, &[0; 7]), &[0.0, 0.5]);
    }

    #[test]
    fn scenario_126_weights_divide_what_two_spreads_say() {
        let fleet = fleet(&[("dc1", "r1"), ("dc2", "r1"), ("dc1", "r2"), ("dc1", "r2")]);
        let spreads = vec![
            spread("${node.datacenter}", 100, &[("dc1", 60), ("dc2", 40)]),
            spread("${meta.rack}", 50, &[("r1", 40), ("r2", 60)]),
        ];
        let actual = boosts(&fleet, &job(10, spreads), &[0, 2]);
        assert_close(&actual, &[0.5, 0.666_67, 0.555_56, 0.555_56]);
    }

    #[test]
    fn scenario_127_an_even_spread() {
        let fleet = fleet(&[("dc1", ""), ("dc2", ""), ("dc3", "")]);
        let job = job(10, vec![spread("${node.datacenter}", 50, &[])]);
        assert_close(&boosts(&fleet, &job, &[]), &[0.0, 0.0, 0.0]);
        assert_close(&boosts(&fleet, &job, &[0, 0]), &[-1.0, 1.0, 1.0]);
        let two_three = boosts(&fleet, &job, &[0, 0, 1, 1, 1]);
        assert_close(&two_three[..2], &[0.5, -0.5]);
        let equal = boosts(&fleet, &job, &[0, 0, 0, 1, 1, 1]);
        assert_close(&equal, &[-1.0, -1.0, 1.0]);
    }

    #[test]
    fn scenario_128_values_that_no_target_names_are_not_wanted() {
        let fleet = fleet(&[("dc1", "r1"), ("dc2", "")]);
        let never = job(4, vec![spread("${node.datacenter}", 50, &[("dc7", 100)])]);
        assert_close(&boosts(&fleet, &never, &[]), &[-1.0, -1.0]);
        let missing = job(4, vec![spread("${meta.rack}", 50, &[])]);
        assert_close(&boosts(&fleet, &missing, &[]), &[0.0, -1.0]);
        assert_close(&boosts(&fleet, &missing, &[1, 1]), &[0.0, -1.0]);
    }

    /// Nomad takes the lowest boost it happens to have met, and has no bound for it: -11.5, and -24.
    /// Here an empty share has the lowest boost, in whatever order nodes come.
    #[test]
    fn scenario_129_an_empty_share_is_the_least_wanted() {
        let fleet = fleet(&[("dc3", ""), ("dc1", ""), ("dc2", "")]);
        let shares = |dc1, dc2| {
            let targets = [("dc1", dc1), ("dc2", dc2), ("*", 0)];
            job(8, vec![spread("${node.datacenter}", 50, &targets)])
        };
        assert_close(&boosts(&fleet, &shares(50, 50), &[]), &[-1.0, 0.75, 0.75]);
        let uneven = boosts(&fleet, &shares(99, 1), &[]);
        assert_close(&uneven, &[-1.0, 0.873_74, -0.728_26]);
        let used = boosts(&fleet, &shares(99, 1), &[2, 0]);
        assert_close(&used, &[-1.0, 0.873_74, -0.869_79]);
    }

    /// Up to half a share of excess, boosts are linear; beyond, a share used three times is worse
    /// than one used twice, and both are better than an undesired value.
    #[test]
    fn far_above_its_share_a_boost_still_falls() {
        for (desired, used, want) in [
            (4.0, 1, 0.5),
            (4.0, 3, 0.0),
            (4.0, 4, -0.25),
            (4.0, 5, -0.5),
            (4.0, 7, -0.75),
            (4.0, 11, -0.875),
            (0.5, 0, -0.5),
            (0.5, 1, -0.833_33),
        ] {
            let actual = share_boost(desired, used);
            assert_close(&[actual], &[want]);
        }
    }

    proptest! {
        #[test]
        fn a_share_says_less_the_more_there_are_and_never_as_little_as_none(
            desired in 0.001_f64..50.0,
            used in 0_u32..200,
        ) {
            let (actual, next) = (share_boost(desired, used), share_boost(desired, used + 1));
            prop_assert!(UNWANTED < next && next < actual && actual < 1.0, "{actual}, then {next}");
        }

        #[test]
        fn an_even_spread_says_less_the_more_there_are(
            min in 1_u32..50,
            more in 0_u32..200,
            used in 0_u32..200,
        ) {
            let range = (min, min + more);
            let (unused, least) = (even_boost(0, range), even_boost(min, range));
            prop_assert!((UNWANTED..1.0).contains(&least) && unused == 1.0, "{least}");
            let (used, next) = (min + used % (more + 1), min + used % (more + 1) + 1);
            let (actual, next) = (even_boost(used, range), even_boost(next, range));
            prop_assert!(UNWANTED <= actual && actual <= least, "{actual}");
            prop_assert!(more == 0 || next < actual, "{actual}, then {next}");
        }
    }

    #[test]
    fn boosts_by_use_equal_boosts_by_value() {
        let racks: Vec<_> = (0..9).map(|rack| format!("r{rack}")).collect();
        let mut nodes: Vec<_> = racks.iter().map(|rack| ("dc1", rack.as_str())).collect();
        nodes.push(("dc1", ""));
        let many = fleet(&nodes);
        // Four nodes of each value, and values are few.
        let few = fleet(&nodes.repeat(4));
        assert!(goes_by_count(10, 10) && !goes_by_count(10, 40));
        let spread = || spread("${meta.rack}", 50, &[]);
        let used = [0, 1, 1, 3, 3, 3];
        let of_many = boosts(&many, &job(9, vec![spread()]), &used);
        assert_eq!(of_many.last().copied().unwrap(), UNWANTED);
        let of_few = boosts(&few, &job(9, vec![spread()]), &used);
        assert_close(&of_many, &of_few[..10]);
    }
}
