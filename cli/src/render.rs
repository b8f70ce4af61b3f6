//! Text output of objects, one file per noun.
//!
//! Pure: objects and a [`Style`] in, text out. `tests/golden` has examples.

use crate::output::colour::Colour;
use crate::output::id::Length;
use crate::output::time::Times;

pub(crate) mod alloc;
pub(crate) mod children;
pub(crate) mod csi;
pub(crate) mod deployment;
pub(crate) mod deployment_hold;
pub(crate) mod diff;
pub(crate) mod etcd;
pub(crate) mod eval;
pub(crate) mod event;
pub(crate) mod explain;
pub(crate) mod file;
pub(crate) mod introduction;
pub(crate) mod job;
pub(crate) mod keyring;
pub(crate) mod log;
pub(crate) mod metric;
pub(crate) mod namespace;
pub(crate) mod node;
pub(crate) mod node_meta;
pub(crate) mod node_pool;
pub(crate) mod operator;
pub(crate) mod plan;
pub(crate) mod scaling;
pub(crate) mod service;
pub(crate) mod task;
pub(crate) mod usage;
pub(crate) mod variable;
pub(crate) mod version;
pub(crate) mod volume;

#[cfg(test)]
pub(crate) mod tests;

/// Level of detail, colours and times of text output.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    /// Full IDs and exact times instead of short and relative ones.
    pub(crate) verbose: bool,
    pub(crate) colour: Colour,
    pub(crate) times: Times,
}

impl Style {
    pub(crate) fn ids(&self) -> Length {
        Length::verbose(self.verbose)
    }

    /// Formats an ID.
    pub(crate) fn id(&self, id: &str) -> String {
        self.ids().of(id)
    }

    /// Formats a time.
    pub(crate) fn time(&self, ns: u64) -> String {
        self.times.either(ns, self.verbose)
    }

    /// Returns a section: an empty line, the title and the body.
    pub(crate) fn section(&self, title: &str, body: &str) -> String {
        format!("\n{}\n{body}", self.colour.bold(title))
    }
}

/// Returns the entries of a map sorted by key; protobuf maps have no order.
pub(crate) fn sorted<'a, Map, V: 'a>(map: &'a Map) -> Vec<(&'a str, &'a V)>
where
    &'a Map: IntoIterator<Item = (&'a String, &'a V)>,
{
    let mut entries: Vec<_> = map
        .into_iter()
        .map(|(key, value)| (key.as_str(), value))
        .collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}
