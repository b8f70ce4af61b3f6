//! Compiled constraints on devices; affinities are the same with a weight.

use std::borrow::Cow;
use std::cmp::Ordering;

use model::node::NodeDevice;
use model::{Constraint, Operator};

use crate::check::compare_texts;
use crate::quantity::Quantity;

/// The values of `${device.…}`.
pub(super) struct Facts<'a> {
    kind: &'a NodeDevice,
    ids: Cow<'a, str>,
    is_instance: bool,
}

impl<'a> Facts<'a> {
    pub(super) fn of_kind(kind: &'a NodeDevice) -> Self {
        let ids = kind.instances.iter().map(|instance| instance.id.as_str());
        Self {
            kind,
            ids: Cow::Owned(ids.collect::<Vec<_>>().join(",")),
            is_instance: false,
        }
    }

    pub(super) fn of_instance(kind: &'a NodeDevice, id: &'a str) -> Self {
        Self {
            kind,
            ids: Cow::Borrowed(id),
            is_instance: true,
        }
    }
}

/// A constraint on a device, or the test of an affinity.
#[derive(Clone, Debug)]
pub(super) struct DeviceCheck {
    left: DeviceTarget,
    operator: Operator,
    right: DeviceTarget,
    text: String,
}

/// One side of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DeviceTarget {
    Literal(String),
    Ids,
    Model,
    Vendor,
    Type,
    Attribute(String),
    /// An unknown interpolation, which is never found.
    Unknown,
}

impl DeviceTarget {
    fn parse(text: &str) -> Self {
        let Some(rest) = text.strip_prefix("${") else {
            return Self::Literal(text.to_owned());
        };
        match rest.strip_suffix('}') {
            Some("device.ids") => Self::Ids,
            Some("device.model") => Self::Model,
            Some("device.vendor") => Self::Vendor,
            Some("device.type") => Self::Type,
            Some(name) => match name.strip_prefix("device.attr.") {
                Some(key) => Self::Attribute(key.to_owned()),
                None => Self::Unknown,
            },
            None => Self::Unknown,
        }
    }

    fn resolve<'a>(&'a self, facts: &'a Facts<'_>) -> Option<&'a str> {
        Some(match self {
            Self::Literal(text) => text,
            Self::Ids => &facts.ids,
            Self::Model => &facts.kind.name,
            Self::Vendor => &facts.kind.vendor,
            Self::Type => &facts.kind.device_type,
            Self::Attribute(key) => facts.kind.attributes.get(key)?,
            Self::Unknown => return None,
        })
    }
}

impl DeviceCheck {
    pub(super) fn new(constraint: &Constraint) -> Self {
        Self::from_parts(&constraint.left, constraint.operator, &constraint.right)
    }

    pub(super) fn from_parts(left: &str, operator: Operator, right: &str) -> Self {
        Self {
            left: DeviceTarget::parse(left),
            operator,
            right: DeviceTarget::parse(right),
            text: format!("{left} {} {right}", operator.as_str())
                .trim_end()
                .to_owned(),
        }
    }

    /// Returns its text, as in `${device.attr.memory} >= 24 GiB`.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the values of the facts that it reads, the left side first; `None`: the device has
    /// no such fact.
    pub(super) fn facts(&self, facts: &Facts<'_>) -> Vec<Option<String>> {
        let sides = [&self.left, &self.right].into_iter();
        let asked = sides.filter(|side| !matches!(side, DeviceTarget::Literal(_)));
        asked
            .map(|side| side.resolve(facts).map(str::to_owned))
            .collect()
    }

    pub(super) fn is_about_ids(&self) -> bool {
        self.left == DeviceTarget::Ids || self.right == DeviceTarget::Ids
    }

    /// Tests of one id apply to an instance; tests of a list of ids also to the kind.
    pub(super) fn applies_to_kinds(&self) -> bool {
        !self.is_about_ids()
            || matches!(
                self.operator,
                Operator::SetContains | Operator::SetContainsAll | Operator::SetContainsAny
            )
    }

    pub(super) fn passes(&self, facts: &Facts<'_>) -> bool {
        let left = self.left.resolve(facts);
        let right = self.right.resolve(facts);
        let (left, right) = match (self.operator, left, right) {
            (Operator::IsSet, left, _) => return left.is_some(),
            (Operator::IsNotSet, left, _) => return left.is_none(),
            (Operator::NotEqual, left, right) if left.is_none() || right.is_none() => {
                return left.is_some() || right.is_some();
            }
            (_, Some(left), Some(right)) => (left, right),
            _ => return false,
        };
        // All instances of a kind together have the ids of a list; one of them has one of it.
        if facts.is_instance
            && self.left == DeviceTarget::Ids
            && matches!(
                self.operator,
                Operator::SetContains | Operator::SetContainsAll
            )
        {
            return compare_texts(right, Operator::SetContains, left);
        }
        compare(left, self.operator, right)
    }
}

/// Compares with units where both sides have comparable values; otherwise nothing holds.
fn compare(left: &str, operator: Operator, right: &str) -> bool {
    let order = || Quantity::parse(left).compare(Quantity::parse(right));
    let equals = || Quantity::parse(left).equals(Quantity::parse(right));
    match operator {
        Operator::Equal => equals() == Some(true),
        Operator::NotEqual => equals() == Some(false),
        Operator::Less => order().is_some_and(Ordering::is_lt),
        Operator::LessOrEqual => order().is_some_and(Ordering::is_le),
        Operator::Greater => order().is_some_and(Ordering::is_gt),
        Operator::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
        Operator::Regexp
        | Operator::Version
        | Operator::Semver
        | Operator::SetContains
        | Operator::SetContainsAll
        | Operator::SetContainsAny => compare_texts(left, operator, right),
        // These read several allocations, or are handled before.
        Operator::DistinctHosts
        | Operator::DistinctProperty
        | Operator::IsSet
        | Operator::IsNotSet => false,
    }
}
