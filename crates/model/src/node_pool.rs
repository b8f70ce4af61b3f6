//! Node pools: named groups of nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::field_error::FieldErrors;
use crate::name::NameRule;
use crate::scheduler_config::PoolConfiguration;

/// Longest name. Source: Nomad's public limits, as are the others here.
pub const MAX_NAME_CHARS: usize = 128;

/// The value of `node-pool/<name>`.
///
/// The pools [`NodePool::ALL`] and [`NodePool::DEFAULT`] are built in: they always exist, are not
/// stored, and cannot be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePool {
    /// Stands in the key, so the stored value leaves it out; filled in on read.
    #[serde(skip)]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// Overrides the cluster's scheduler configuration for the pool's jobs.
    #[serde(default, skip_serializing_if = "PoolConfiguration::is_empty")]
    pub scheduler_config: PoolConfiguration,
    /// Marked for deletion: the pool accepts no new jobs. The mark is the first step of a deletion. It
    /// changes the pool's key, which every registration of a job compares, so a registration decided
    /// before it fails. The second step, the deletion, cannot compare keys of jobs yet to be created.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
}

const NAME: NameRule = NameRule {
    noun: "node pool",
    example: "gpu",
    marks: "-_",
    marks_in_words: "hyphens and underscores",
    max_chars: MAX_NAME_CHARS,
};

impl NodePool {
    /// The pool of every node; jobs may name it, nodes may not.
    pub const ALL: &str = "all";
    /// The pool of nodes and jobs that name none.
    pub const DEFAULT: &str = "default";

    /// Returns a pool with a name and no settings.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Tells whether the pool with this name is built in.
    pub fn is_built_in(name: &str) -> bool {
        name == Self::ALL || name == Self::DEFAULT
    }

    /// Returns the built-in pools, ordered by name.
    pub fn built_in() -> [Self; 2] {
        let pool = |name: &str, description: &str| Self {
            description: description.to_owned(),
            ..Self::named(name)
        };
        [
            pool(Self::ALL, "Node pool with all nodes in the cluster."),
            pool(Self::DEFAULT, "Default node pool."),
        ]
    }

    /// Returns the problem of an invalid name; `None`: the name is valid.
    pub fn name_problem(name: &str) -> Option<String> {
        NAME.problem(name)
    }

    /// Validates the fields that users set. Paths begin at the pool.
    ///
    /// # Errors
    /// All invalid fields.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        NAME.check_described(&self.name, &self.description, &mut errors);
        errors.into_result(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word_that_fits_in_a_key_and_a_column() {
        for name in ["gpu", "GPU_2", "a-b", &"x".repeat(128)] {
            assert_eq!(NodePool::name_problem(name), None, "{name}");
        }
        for name in ["", "a b", "a/b", "größe", "a.b", &"x".repeat(129)] {
            assert!(NodePool::name_problem(name).is_some(), "{name}");
        }
    }

    #[test]
    fn all_invalid_fields_are_named() {
        let pool = NodePool {
            description: "x".repeat(257),
            ..NodePool::named("a/b")
        };
        let errors = pool.check().unwrap_err();
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["name", "description"]);
        let pool = NodePool {
            description: "ä".repeat(256),
            ..NodePool::named("gpu")
        };
        pool.check().unwrap();
    }
}
