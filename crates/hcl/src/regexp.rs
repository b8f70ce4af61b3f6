//! Regular expressions of files: compiled with a limit on their size.

use regex::{Regex, RegexBuilder};

/// Maximum size of a compiled expression: a hundred times that of real ones.
const MAX_BYTES: usize = 1 << 20;

/// # Errors
/// The pattern is malformed or compiles to more than 1 MiB.
pub fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(MAX_BYTES).build()
}
