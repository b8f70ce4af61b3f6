//! Constraints and affinities: tests of a node by a job.

use serde::{Deserialize, Serialize};

/// A test that a node must pass: `left operator right`, as in `${attr.kernel.name} = linux`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Constraint {
    /// A literal, or an interpolation such as `${attr.cpu.arch}`, `${meta.rack}`, `${node.datacenter}`.
    pub left: String,
    pub operator: Operator,
    /// Empty if the operator takes no right side.
    pub right: String,
}

/// Comparison of the two sides of a constraint or an affinity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operator {
    #[default]
    #[serde(rename = "=")]
    Equal,
    #[serde(rename = "!=")]
    NotEqual,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    LessOrEqual,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = ">=")]
    GreaterOrEqual,
    #[serde(rename = "regexp")]
    Regexp,
    #[serde(rename = "version")]
    Version,
    #[serde(rename = "semver")]
    Semver,
    #[serde(rename = "set_contains")]
    SetContains,
    #[serde(rename = "set_contains_all")]
    SetContainsAll,
    #[serde(rename = "set_contains_any")]
    SetContainsAny,
    #[serde(rename = "is_set")]
    IsSet,
    #[serde(rename = "is_not_set")]
    IsNotSet,
    #[serde(rename = "distinct_hosts")]
    DistinctHosts,
    #[serde(rename = "distinct_property")]
    DistinctProperty,
}

impl Operator {
    pub const ALL: [Self; 16] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
        Self::Regexp,
        Self::Version,
        Self::Semver,
        Self::SetContains,
        Self::SetContainsAll,
        Self::SetContainsAny,
        Self::IsSet,
        Self::IsNotSet,
        Self::DistinctHosts,
        Self::DistinctProperty,
    ];

    /// Returns the operator's word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Regexp => "regexp",
            Self::Version => "version",
            Self::Semver => "semver",
            Self::SetContains => "set_contains",
            Self::SetContainsAll => "set_contains_all",
            Self::SetContainsAny => "set_contains_any",
            Self::IsSet => "is_set",
            Self::IsNotSet => "is_not_set",
            Self::DistinctHosts => "distinct_hosts",
            Self::DistinctProperty => "distinct_property",
        }
    }

    /// Returns the operator named `text`; `==` and `is` mean `=`, `not` means `!=`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "==" | "is" => Some(Self::Equal),
            "not" => Some(Self::NotEqual),
            _ => Self::ALL
                .into_iter()
                .find(|operator| operator.as_str() == text),
        }
    }
}

/// A preference: a node that passes the test is better (or worse, when negative) by `weight`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Affinity {
    pub left: String,
    pub operator: Operator,
    pub right: String,
    /// −100 to 100, never 0.
    pub weight: i8,
}

/// A preference to spread allocations over the values of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spread {
    pub attribute: String,
    /// 0 to 100.
    pub weight: u8,
    /// Empty: evenly over every value.
    pub targets: Vec<SpreadTarget>,
}

/// The share of allocations that one value of a spread's attribute should have.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SpreadTarget {
    pub value: String,
    /// 0 to 100; the targets of one spread add up to at most 100.
    pub percent: u8,
}
