//! Scopes of expressions: `var`, `local`, loop variables, iterators.

use super::value::Value;

/// Names and their values, the innermost first.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scope<'a> {
    parent: Option<&'a Scope<'a>>,
    names: &'a [(&'a str, &'a Value)],
}

impl<'a> Scope<'a> {
    pub(crate) fn new(names: &'a [(&'a str, &'a Value)]) -> Self {
        Self {
            parent: None,
            names,
        }
    }

    /// A scope within this one; its names hide those of the outer ones.
    pub(crate) fn child(&'a self, names: &'a [(&'a str, &'a Value)]) -> Self {
        Self {
            parent: Some(self),
            names,
        }
    }

    /// Returns the value of `name`; `None` for a runtime name.
    pub(crate) fn lookup(&self, name: &str) -> Option<&'a Value> {
        let found = self.names.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, value)| *value)
            .or_else(|| self.parent?.lookup(name))
    }
}
