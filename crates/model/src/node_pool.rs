//! A named part of the cluster's nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::field_error::FieldErrors;
use crate::scheduler_config::PoolConfiguration;

/// The longest name. Source: Nomad's public limits, as are the others here.
pub const MAX_NAME_CHARS: usize = 128;
/// The longest description.
pub const MAX_DESCRIPTION_CHARS: usize = 256;

/// The value of `node-pool/<name>`.
///
/// The pools [`NodePool::ALL`] and [`NodePool::DEFAULT`] are there without being stored, and
/// nobody can change them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePool {
    /// Stands in the key, so the stored value leaves it out; filled in on read.
    #[serde(skip)]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// What holds for its jobs instead of the cluster's configuration.
    #[serde(default, skip_serializing_if = "PoolConfiguration::is_empty")]
    pub scheduler_config: PoolConfiguration,
    /// About to be deleted: takes no new jobs. Deleting takes two steps, because a job that is
    /// being registered compares the pool's key and not the other way round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
}

impl NodePool {
    /// The pool of every node; jobs may name it, nodes may not.
    pub const ALL: &str = "all";
    /// The pool of nodes and jobs that name none.
    pub const DEFAULT: &str = "default";

    /// Returns a pool with nothing but a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Tells whether a pool of this name is always there and never changes.
    pub fn is_built_in(name: &str) -> bool {
        name == Self::ALL || name == Self::DEFAULT
    }

    /// Returns the pools that are always there, ordered by name.
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

    /// Says what is wrong with a name; `None`: nothing.
    pub fn name_problem(name: &str) -> Option<String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() {
            return Some("missing: want a name, as in \"gpu\"".to_owned());
        }
        if name.chars().count() > MAX_NAME_CHARS || !name.chars().all(fits) {
            return Some(format!(
                "{name:?} is not a node pool's name: want 1 to {MAX_NAME_CHARS} letters of a to z, \
                 digits, hyphens and underscores"
            ));
        }
        None
    }

    /// Checks what a user may get wrong. Paths begin at the pool.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Some(problem) = Self::name_problem(&self.name) {
            errors.push("name", problem);
        }
        let length = self.description.chars().count();
        if length > MAX_DESCRIPTION_CHARS {
            errors.push(
                "description",
                format!("has {length} characters: want at most {MAX_DESCRIPTION_CHARS}"),
            );
        }
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
    fn everything_wrong_is_named() {
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
