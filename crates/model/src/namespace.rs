//! Namespaces: named groups of jobs, with rules for drivers and node pools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::field_error::FieldErrors;
use crate::name::NameRule;
use crate::node_pool::NodePool;

/// Longest name. Source: Nomad's public limits, as are the others here.
pub const MAX_NAME_CHARS: usize = 128;

/// The value of `namespace/<name>`.
///
/// The namespace [`Namespace::DEFAULT`] always exists; it is stored once it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Stands in the key, so the stored value leaves it out; filled in on read.
    #[serde(skip)]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Capabilities::is_empty")]
    pub capabilities: Capabilities,
    #[serde(default, skip_serializing_if = "NodePoolRules::is_empty")]
    pub node_pools: NodePoolRules,
    /// Being deleted: accepts no new jobs and volumes. Deletion takes two steps, because jobs and
    /// volumes compare the namespace's key when they are written, and not the other way round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
}

/// Task drivers that jobs of a namespace may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Empty: every driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enabled_task_drivers: Vec<String>,
    /// Refused drivers; wins over `enabled_task_drivers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disabled_task_drivers: Vec<String>,
}

const NAME: NameRule = NameRule {
    noun: "namespace",
    example: "dev",
    marks: "-",
    marks_in_words: "hyphens",
    max_chars: MAX_NAME_CHARS,
};

impl Capabilities {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn allow_driver(&self, driver: &str) -> bool {
        let names = |list: &[String]| list.iter().any(|name| name == driver);
        let enabled = &self.enabled_task_drivers;
        (enabled.is_empty() || names(enabled)) && !names(&self.disabled_task_drivers)
    }
}

/// Node pools that jobs of a namespace may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePoolRules {
    /// Pool of jobs that name none; always allowed; empty: [`NodePool::DEFAULT`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub default: String,
    /// Patterns, in which `*` matches any text; `None`: every pool that is not denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// Patterns; empty when `allowed` is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
}

impl NodePoolRules {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the pool of jobs that name none.
    pub fn default_pool(&self) -> &str {
        if self.default.is_empty() {
            NodePool::DEFAULT
        } else {
            &self.default
        }
    }

    fn check(&self, errors: &mut FieldErrors) {
        let path = |field: &str| format!("node_pool_configuration.{field}");
        let default = self.default_pool();
        if let Some(problem) = NodePool::name_problem(default) {
            errors.push(path("default"), problem);
        }
        if self.allowed.is_some() && !self.denied.is_empty() {
            errors.push(
                path("denied"),
                "cannot be given together with allowed: want one of both",
            );
        }
        let lists = [
            ("allowed", self.allowed.as_deref().unwrap_or_default()),
            ("denied", &self.denied),
        ];
        for (field, patterns) in lists {
            for (position, pattern) in patterns.iter().enumerate() {
                // A star matches letters, so it may stand wherever they may.
                if let Some(problem) = NodePool::name_problem(&pattern.replace('*', "x")) {
                    errors.push(format!("{}[{position}]", path(field)), problem);
                }
            }
        }
    }
}

impl Namespace {
    /// The namespace of jobs that name none; it cannot be deleted.
    pub const DEFAULT: &str = "default";

    /// Returns the namespace that a request means: the default one if it names none.
    pub fn or_default(name: &str) -> &str {
        if name.is_empty() { Self::DEFAULT } else { name }
    }

    /// Returns a namespace with a name and no settings.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Returns [`Self::DEFAULT`] in its unchanged form.
    pub fn built_in() -> Self {
        Self {
            description: "Default shared namespace".to_owned(),
            ..Self::named(Self::DEFAULT)
        }
    }

    /// Returns the problem of an invalid name; `None`: the name is valid.
    pub fn name_problem(name: &str) -> Option<String> {
        NAME.problem(name)
    }

    /// Validates the fields that users set. Paths begin at the namespace.
    ///
    /// # Errors
    /// All invalid fields.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        NAME.check_described(&self.name, &self.description, &mut errors);
        let Capabilities {
            enabled_task_drivers,
            disabled_task_drivers,
        } = &self.capabilities;
        let lists = [
            ("enabled_task_drivers", enabled_task_drivers),
            ("disabled_task_drivers", disabled_task_drivers),
        ];
        for (field, drivers) in lists {
            for (position, driver) in drivers.iter().enumerate() {
                if driver.is_empty() {
                    let path = format!("capabilities.{field}[{position}]");
                    errors.push(path, "missing: want a driver's name, as in \"raw_exec\"");
                }
            }
        }
        self.node_pools.check(&mut errors);
        errors.into_result(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_letters_digits_and_hyphens() {
        for name in ["dev", "DEV-2", "default", &"x".repeat(128)] {
            assert_eq!(Namespace::name_problem(name), None, "{name}");
        }
        for name in ["", "a b", "a/b", "a_b", "*", "größe", &"x".repeat(129)] {
            assert!(Namespace::name_problem(name).is_some(), "{name}");
        }
    }

    #[test]
    fn all_invalid_fields_are_named() {
        let wrong = Namespace {
            description: "x".repeat(257),
            capabilities: Capabilities {
                enabled_task_drivers: vec!["raw_exec".to_owned(), String::new()],
                ..Capabilities::default()
            },
            node_pools: NodePoolRules {
                default: "a b".to_owned(),
                allowed: Some(vec!["gpu-*".to_owned(), "a/*".to_owned()]),
                denied: vec![String::new()],
            },
            ..Namespace::named("a/b")
        };
        let errors = wrong.check().unwrap_err();
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        let expected = [
            "name",
            "description",
            "capabilities.enabled_task_drivers[1]",
            "node_pool_configuration.default",
            "node_pool_configuration.denied",
            "node_pool_configuration.allowed[1]",
            "node_pool_configuration.denied[0]",
        ];
        assert_eq!(fields, expected);
        let right = Namespace {
            description: "ä".repeat(256),
            node_pools: NodePoolRules {
                default: "all".to_owned(),
                allowed: Some(vec!["*".to_owned()]),
                denied: Vec::new(),
            },
            ..Namespace::named("dev")
        };
        right.check().unwrap();
    }

    #[test]
    fn a_driver_is_allowed_that_is_enabled_and_not_disabled() {
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let rules = |enabled: &[&str], disabled: &[&str]| Capabilities {
            enabled_task_drivers: list(enabled),
            disabled_task_drivers: list(disabled),
        };
        assert!(rules(&[], &[]).allow_driver("raw_exec"));
        assert!(rules(&["raw_exec"], &[]).allow_driver("raw_exec"));
        assert!(!rules(&["mock_driver"], &[]).allow_driver("raw_exec"));
        assert!(!rules(&[], &["raw_exec"]).allow_driver("raw_exec"));
        assert!(!rules(&["raw_exec"], &["raw_exec"]).allow_driver("raw_exec"));
    }
}
