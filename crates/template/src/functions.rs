//! The table of functions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::function::Function;

mod builtin;
mod collections;
mod convert;
pub(crate) mod lookups;
mod math;
mod node;
pub(crate) mod scratch;
mod sockaddr;
mod sprig;
mod text;
mod unavailable;

/// The functions that a template may call.
#[derive(Clone, Copy)]
pub(crate) struct Functions {
    table: fn() -> &'static BTreeMap<&'static str, Function>,
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

static OF_TASKS: LazyLock<BTreeMap<&'static str, Function>> = LazyLock::new(|| {
    let groups = [
        builtin::FUNCTIONS,
        text::FUNCTIONS,
        collections::FUNCTIONS,
        convert::FUNCTIONS,
        math::FUNCTIONS,
        node::FUNCTIONS,
        lookups::FUNCTIONS,
    ];
    groups
        .into_iter()
        .flatten()
        .chain(sprig::all())
        .map(|function| (function.name, *function))
        .collect()
});

static OF_SOCKADDR: LazyLock<BTreeMap<&'static str, Function>> = LazyLock::new(|| {
    builtin::FUNCTIONS
        .iter()
        .chain(sockaddr::FUNCTIONS)
        .map(|function| (function.name, *function))
        .collect()
});

impl Functions {
    /// The functions of a task's template.
    pub(crate) const OF_TASKS: Self = Self {
        table: || &OF_TASKS,
    };
    /// The functions inside the argument of `sockaddr`.
    pub(crate) const OF_SOCKADDR: Self = Self {
        table: || &OF_SOCKADDR,
    };

    pub(crate) fn get(self, name: &str) -> Option<Function> {
        (self.table)().get(name).copied()
    }

    pub(crate) fn names(self) -> Vec<&'static str> {
        (self.table)().keys().copied().collect()
    }

    /// # Errors
    /// There is no such function; the message says what to use.
    pub(crate) fn check(self, name: &str) -> Result<(), String> {
        if self.get(name).is_some() {
            return Ok(());
        }
        match unavailable::hint(name) {
            Some(hint) => Err(format!(
                "the function {name} is not available in templates: {hint}"
            )),
            None => {
                let hint = suggest::hint(name, (self.table)().keys().copied());
                let stop = if hint.is_empty() { "" } else { "." };
                Err(format!("there is no function {name}{stop}{hint}"))
            }
        }
    }
}
