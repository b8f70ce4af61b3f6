//! Distinctness constraints between the allocations of a job.
//!
//! Only the scheduler checks them: one evaluation of a job runs at a time, so no concurrent plan
//! places allocations of the job, and the plan-applier need not check again.

use model::{Constraint, Node, Operator};
use rustc_hash::FxHashMap;

use crate::check::parse_bool;
use crate::target::Target;

/// The allocations that a distinctness constraint counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// All allocations of the job.
    Job,
    /// The allocations of the task group.
    Group,
}

/// At most one allocation of the level on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistinctHosts {
    pub level: Level,
}

impl DistinctHosts {
    /// The reason of a node that already has one.
    pub const REASON: &'static str = crate::reasons::DISTINCT_HOSTS;

    /// Returns the first such constraint, unless it is disabled (`"false"`).
    pub(crate) fn find(levels: [(Level, &Vec<Constraint>); 2]) -> Option<Self> {
        let (level, constraint) = all(levels, Operator::DistinctHosts).next()?;
        (parse_bool(&constraint.right) != Some(false)).then_some(Self { level })
    }
}

/// At most `allowed` allocations of the level on all nodes that share a property's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistinctProperty {
    pub level: Level,
    property: String,
    target: Target,
    /// An invalid number is kept as text, and no node passes.
    allowed: Result<u32, String>,
}

impl DistinctProperty {
    pub(crate) fn find(levels: [(Level, &Vec<Constraint>); 2]) -> Vec<Self> {
        all(levels, Operator::DistinctProperty)
            .map(|(level, constraint)| Self {
                level,
                property: constraint.left.clone(),
                target: Target::parse(&constraint.left),
                allowed: parse_allowed(&constraint.right),
            })
            .collect()
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the number of allocations that may share a value.
    ///
    /// # Errors
    /// The reason of every node when the job's number is invalid.
    pub fn allowed(&self) -> Result<u32, &str> {
        self.allowed.as_ref().copied().map_err(String::as_str)
    }

    /// Returns the reason of a node without a value.
    pub fn missing(&self) -> String {
        format!("missing property \"{}\"", self.property)
    }

    /// Returns the reason of a node whose `value` is used up.
    pub fn used_up(&self, value: &str, used: u32) -> String {
        let property = &self.property;
        format!("distinct_property: {property}={value} used by {used} allocs")
    }
}

fn parse_allowed(text: &str) -> Result<u32, String> {
    if text.is_empty() {
        return Ok(1);
    }
    text.parse()
        .map_err(|_| format!("distinct_property: {text:?} is not a count"))
}

fn all(
    levels: [(Level, &Vec<Constraint>); 2],
    operator: Operator,
) -> impl Iterator<Item = (Level, &Constraint)> {
    levels.into_iter().flat_map(move |(level, constraints)| {
        constraints
            .iter()
            .filter(move |constraint| constraint.operator == operator)
            .map(move |constraint| (level, constraint))
    })
}

/// The use of each value of one property, updated as allocations come and go.
#[derive(Clone, Debug)]
pub struct PropertyUse<'a> {
    rule: &'a DistinctProperty,
    /// Value → number of allocations; an unused value is absent.
    used: FxHashMap<String, u32>,
}

impl<'a> PropertyUse<'a> {
    pub fn new(rule: &'a DistinctProperty) -> Self {
        Self {
            rule,
            used: FxHashMap::default(),
        }
    }

    pub fn level(&self) -> Level {
        self.rule.level
    }

    pub fn add(&mut self, node: &Node) {
        if let Some(value) = self.rule.target.resolve(node) {
            *self.used.entry(value.into_owned()).or_insert(0) += 1;
        }
    }

    pub fn remove(&mut self, node: &Node) {
        let Some(value) = self.rule.target.resolve(node) else {
            return;
        };
        if let Some(count) = self.used.get_mut(value.as_ref()) {
            *count -= 1;
            if *count == 0 {
                self.used.remove(value.as_ref());
            }
        }
    }

    /// Tells whether `node` has no value.
    pub fn is_missing(&self, node: &Node) -> bool {
        self.rule.target.resolve(node).is_none()
    }

    /// Checks whether one more may be on `node`.
    ///
    /// # Errors
    /// The reason of a node that must not have one more.
    pub fn check(&self, node: &Node) -> Result<(), String> {
        let allowed = self.rule.allowed()?;
        let Some(value) = self.rule.target.resolve(node) else {
            return Err(self.rule.missing());
        };
        let used = self.used.get(value.as_ref()).copied().unwrap_or(0);
        if used >= allowed {
            return Err(self.rule.used_up(&value, used));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use test_kit::builders;

    use super::*;

    fn rules(left: &str, operator: Operator, right: &str) -> Vec<Constraint> {
        vec![Constraint {
            left: left.into(),
            operator,
            right: right.into(),
        }]
    }

    fn hosts(right: &str) -> Option<DistinctHosts> {
        let constraints = rules("", Operator::DistinctHosts, right);
        DistinctHosts::find([(Level::Job, &constraints), (Level::Group, &Vec::new())])
    }

    #[test]
    fn scenario_108_distinct_hosts_is_on_unless_it_says_false() {
        assert_eq!(hosts(""), Some(DistinctHosts { level: Level::Job }));
        assert_eq!(hosts("nope"), Some(DistinctHosts { level: Level::Job }));
        assert_eq!(hosts("false"), None);
    }

    fn property(right: &str) -> DistinctProperty {
        let constraints = rules("${meta.rack}", Operator::DistinctProperty, right);
        DistinctProperty::find([(Level::Job, &constraints), (Level::Group, &Vec::new())]).remove(0)
    }

    #[test]
    fn scenario_109_a_stop_makes_room_for_its_property() {
        let rule = property("2");
        let mut node = builders::node(1);
        node.meta.insert("rack".into(), "r1".into());
        let mut used = PropertyUse::new(&rule);
        used.add(&node);
        used.add(&node);
        assert_eq!(
            used.check(&node),
            Err("distinct_property: ${meta.rack}=r1 used by 2 allocs".to_owned())
        );
        used.remove(&node);
        assert_eq!(used.check(&node), Ok(()));
    }

    #[test]
    fn a_node_without_the_property_or_a_rule_without_a_count_never_passes() {
        let node = builders::node(1);
        assert_eq!(
            PropertyUse::new(&property("")).check(&node),
            Err("missing property \"${meta.rack}\"".to_owned())
        );
        assert_eq!(
            PropertyUse::new(&property("many")).check(&node),
            Err("distinct_property: \"many\" is not a count".to_owned())
        );
    }
}
