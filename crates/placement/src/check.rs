//! Compiled constraints: parsed targets and patterns, for checks of many nodes.

use std::borrow::Cow;
use std::cmp::Ordering;

use model::{Constraint, Node, Operator};
use regex::Regex;

use crate::target::Target;
use crate::version::{Bounds, Style, Version};

/// A compiled constraint, or the test of an affinity.
#[derive(Clone, Debug)]
pub struct Check {
    left: Target,
    operator: Operator,
    right: Right,
    reason: String,
    escapes_class: bool,
}

/// The right side, compiled once where it is a literal.
#[derive(Clone, Debug)]
enum Right {
    Target(Target),
    /// `None`: the text is no pattern, and nothing matches.
    Pattern(Option<Regex>),
    /// `None`: the text is no list of bounds, and nothing is within.
    Bounds(Option<Bounds>),
    /// The items of a list, sorted, as lists of racks or hosts may be long.
    Items(Vec<String>),
}

impl Check {
    pub fn new(constraint: &Constraint) -> Self {
        Self::from_parts(&constraint.left, constraint.operator, &constraint.right)
    }

    /// Compiles the test `left operator right` of a constraint or an affinity.
    pub fn from_parts(left: &str, operator: Operator, right: &str) -> Self {
        let left_target = Target::parse(left);
        let right_target = Target::parse(right);
        let reason = if right.is_empty() {
            format!("{left} {}", operator.as_str())
        } else {
            format!("{left} {} {right}", operator.as_str())
        };
        let escapes_class = left_target.escapes_class() || right_target.escapes_class();
        let right = match (&right_target, operator) {
            (Target::Literal(text), Operator::Regexp) => Right::Pattern(Regex::new(text).ok()),
            (Target::Literal(text), Operator::Version) => {
                Right::Bounds(Bounds::parse(Style::Lenient, text))
            }
            (Target::Literal(text), Operator::Semver) => {
                Right::Bounds(Bounds::parse(Style::Semver, text))
            }
            (
                Target::Literal(text),
                Operator::SetContains | Operator::SetContainsAll | Operator::SetContainsAny,
            ) => {
                let mut sorted: Vec<_> = items(text).map(str::to_owned).collect();
                sorted.sort_unstable();
                Right::Items(sorted)
            }
            _ => Right::Target(right_target),
        };
        Self {
            left: left_target,
            operator,
            right,
            reason,
            escapes_class,
        }
    }

    /// Returns the reason of a node that fails, as in `${attr.kernel.name} = linux`.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Tells whether nodes of one computed class may differ.
    pub fn escapes_class(&self) -> bool {
        self.escapes_class
    }

    /// Tells whether `node` passes. `distinct_hosts` and `distinct_property` always pass here: they
    /// depend on allocations.
    pub fn passes(&self, node: &Node) -> bool {
        let left = self.left.resolve(node);
        match self.operator {
            Operator::DistinctHosts | Operator::DistinctProperty => true,
            Operator::IsSet => left.is_some(),
            Operator::IsNotSet => left.is_none(),
            // A missing fact counts as empty, and need not be present.
            Operator::NotEqual => {
                left.unwrap_or_default() != self.right_text(node).unwrap_or_default()
            }
            _ => match left {
                Some(left) => self.compare(&left, node),
                None => false,
            },
        }
    }

    /// Returns the values of the facts that the constraint reads, the left side first; `None`: the
    /// node has no such fact.
    pub fn facts<'a>(&'a self, node: &'a Node) -> Vec<Option<Cow<'a, str>>> {
        let right = match &self.right {
            Right::Target(target) => Some(target),
            Right::Pattern(_) | Right::Bounds(_) | Right::Items(_) => None,
        };
        let sides = [Some(&self.left), right].into_iter().flatten();
        sides
            .filter(|side| !matches!(side, Target::Literal(_)))
            .map(|side| side.resolve(node))
            .collect()
    }

    fn right_text<'a>(&'a self, node: &'a Node) -> Option<Cow<'a, str>> {
        match &self.right {
            Right::Target(target) => target.resolve(node),
            Right::Pattern(_) | Right::Bounds(_) | Right::Items(_) => None,
        }
    }

    fn compare(&self, left: &str, node: &Node) -> bool {
        match &self.right {
            Right::Pattern(pattern) => pattern.as_ref().is_some_and(|regex| regex.is_match(left)),
            Right::Bounds(bounds) => within(left, bounds.as_ref()),
            Right::Items(wanted) if self.operator == Operator::SetContainsAny => {
                let is_wanted = |item: &str| {
                    wanted
                        .binary_search_by(|other| other.as_str().cmp(item))
                        .is_ok()
                };
                items(left).any(is_wanted)
            }
            Right::Items(wanted) => wanted
                .iter()
                .all(|wanted| items(left).any(|item| item == wanted)),
            Right::Target(target) => match target.resolve(node) {
                Some(right) => compare_texts(left, self.operator, &right),
                None => false,
            },
        }
    }
}

fn within(version: &str, bounds: Option<&Bounds>) -> bool {
    match (Version::parse(version), bounds) {
        (Some(version), Some(bounds)) => bounds.admit(&version),
        _ => false,
    }
}

/// Compares two texts by an operator with two sides.
///
/// # Panics
/// On an operator without two sides.
pub(crate) fn compare_texts(left: &str, operator: Operator, right: &str) -> bool {
    match operator {
        Operator::Equal => left == right,
        Operator::Less => order(left, right).is_some_and(Ordering::is_lt),
        Operator::LessOrEqual => order(left, right).is_some_and(Ordering::is_le),
        Operator::Greater => order(left, right).is_some_and(Ordering::is_gt),
        Operator::GreaterOrEqual => order(left, right).is_some_and(Ordering::is_ge),
        Operator::Regexp => Regex::new(right).is_ok_and(|regex| regex.is_match(left)),
        Operator::Version => within(left, Bounds::parse(Style::Lenient, right).as_ref()),
        Operator::Semver => within(left, Bounds::parse(Style::Semver, right).as_ref()),
        Operator::SetContains | Operator::SetContainsAll => {
            items(right).all(|wanted| items(left).any(|item| item == wanted))
        }
        Operator::SetContainsAny => {
            items(right).any(|wanted| items(left).any(|item| item == wanted))
        }
        Operator::NotEqual
        | Operator::IsSet
        | Operator::IsNotSet
        | Operator::DistinctHosts
        | Operator::DistinctProperty => unreachable!("answered without comparing"),
    }
}

/// Compares as whole numbers, else as decimals, else byte by byte; `None`: one is not a number.
fn order(left: &str, right: &str) -> Option<Ordering> {
    if let (Ok(left), Ok(right)) = (left.parse::<i64>(), right.parse::<i64>()) {
        return Some(left.cmp(&right));
    }
    if let (Ok(left), Ok(right)) = (left.parse::<f64>(), right.parse::<f64>()) {
        return left.partial_cmp(&right);
    }
    Some(left.cmp(right))
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

/// Parses a truth value in the spellings of Nomad's attributes and constraints.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use model::{ComparableResources, NodeEligibility, NodeId, NodeStatus, Timestamp};

    use super::*;

    /// A node with one fact of every kind.
    pub(crate) fn node() -> Node {
        let facts = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        Node {
            id: NodeId::from_random(7),
            secret: String::new(),
            name: "n1".into(),
            datacenter: "dc1".into(),
            node_pool: "default".into(),
            node_class: "big".into(),
            address: String::new(),
            attributes: facts(&[("kernel.name", "linux"), ("unique.hostname", "host-1")]),
            meta: facts(&[("rack", "r1")]),
            drivers: std::collections::BTreeMap::new(),
            resources: ComparableResources {
                cpu_mhz: 4000,
                memory_mib: 8192,
                disk_mib: 100_000,
            },
            reserved: ComparableResources::default(),
            reserved_ports: Vec::new(),
            min_dynamic_port: 20_000,
            max_dynamic_port: 32_000,
            host_ip: "127.0.0.1".into(),
            computed_class: "v1:0".into(),
            status: NodeStatus::Ready,
            status_description: String::new(),
            eligibility: NodeEligibility::Eligible,
            status_updated_at: Timestamp::NEVER,
            drain: None,
            last_drain: None,
            lacks_evals: false,
            dials_out: false,
            events: Vec::new(),
            host_networks: BTreeMap::new(),
            cores: BTreeMap::new(),
            max_allocs: 0,
            devices: Vec::new(),
            host_volumes: BTreeMap::new(),
            csi_nodes: Default::default(),
            csi_controllers: Default::default(),
        }
    }

    fn passes(left: &str, operator: &str, right: &str) -> bool {
        let operator = Operator::parse(operator).unwrap();
        Check::from_parts(left, operator, right).passes(&node())
    }

    #[test]
    fn scenario_103_operands() {
        for (left, operator, right, want) in [
            ("foo", "=", "foo", true),
            ("foo", "==", "bar", false),
            ("foo", "is", "foo", true),
            ("foo", "!=", "foo", false),
            ("foo", "not", "bar", true),
            ("foo", "<", "bar", false),
            ("10", "<", "1", false),
            ("9", "<", "10", true),
            ("1.5", "<", "10.5", true),
            ("1", ">", "foo", false),
            ("a", "<=", "a", true),
            ("2", ">=", "3", false),
            ("${meta.absent}", "!=", "foo", true),
            ("${meta.absent}", "!=", "${meta.missing}", false),
            ("${meta.absent}", "=", "${meta.missing}", false),
            ("${attr.kernel.name}", "=", "linux", true),
            ("linux", "=", "${attr.kernel.name}", true),
            ("${attr.kernel.name}", "regexp", "^lin", true),
            ("${attr.kernel.name}", "regexp", "in", true),
            ("${attr.kernel.name}", "regexp", "(", false),
            ("${meta.absent}", "regexp", ".*", false),
            ("${meta.rack}", "is_set", "", true),
            ("${meta.absent}", "is_set", "", false),
            ("${meta.absent}", "is_not_set", "", true),
            ("x", "distinct_hosts", "", true),
            ("${meta.rack}", "distinct_property", "", true),
        ] {
            assert_eq!(
                passes(left, operator, right),
                want,
                "{left} {operator} {right}"
            );
        }
    }

    /// Scripts and general categories as in Nomad, and letters of any script regardless of case.
    #[test]
    fn patterns_have_unicode_classes() {
        for (pattern, want) in [
            (r"^\p{L}+$", true),
            (r"^\p{Greek}+$", true),
            (r"^\p{Latin}+$", false),
            ("(?i)^ΑΘΉΝΑ$", true),
        ] {
            assert_eq!(passes("αθήνα", "regexp", pattern), want, "{pattern}");
        }
    }

    #[test]
    fn scenario_106_sets() {
        for (left, operator, right, want) in [
            ("foo,bar,baz", "set_contains", "foo,  bar  ", true),
            ("foo,bar,baz", "set_contains_all", "foo,bam", false),
            ("foo,bar,baz", "set_contains_any", "foo,bam", true),
            ("foo,bar,baz", "set_contains_any", "bam", false),
            ("${meta.absent}", "set_contains_any", "foo", false),
            ("foo, bar", "set_contains_any", "z,bar,a", true),
            ("${meta.rack}", "set_contains_any", "r2, r1", true),
            // The list may come from the node, too.
            ("r1", "set_contains_any", "${meta.rack}", true),
            ("r1,r2", "set_contains", "${meta.rack}", true),
            ("r2", "set_contains", "${meta.rack}", false),
        ] {
            assert_eq!(
                passes(left, operator, right),
                want,
                "{left} {operator} {right}"
            );
        }
    }

    #[test]
    fn a_pattern_or_bound_may_come_from_the_node() {
        assert!(passes("r1", "regexp", "${meta.rack}"));
        assert!(!passes("1.2.3", "version", "${meta.rack}"));
    }

    #[test]
    fn the_reason_shows_the_constraint_as_written() {
        let shown =
            |left, operator, right| Check::from_parts(left, operator, right).reason().to_owned();
        assert_eq!(
            shown("${attr.kernel.name}", Operator::Equal, "linux"),
            "${attr.kernel.name} = linux"
        );
        assert_eq!(
            shown("${meta.rack}", Operator::IsSet, ""),
            "${meta.rack} is_set"
        );
    }
}
