//! Context of reading blocks.

use crate::language::eval::Host;
use crate::schema::Schema;

pub(crate) struct Expander<'a> {
    /// The outermost block, for the lookup of misplaced names.
    pub(crate) root: &'static Schema,
    pub(crate) text: &'a str,
    pub(crate) host: &'a Host,
}

/// Returns the path of a field within a block.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
