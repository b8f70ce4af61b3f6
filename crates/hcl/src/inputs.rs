//! Inputs of a file: variables, environment and file access.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Reads a file for the functions `file`, `filebase64` and `fileexists`.
pub type ReadFile = Arc<dyn Fn(&Path) -> std::io::Result<Vec<u8>> + Send + Sync>;

/// Values of a file's variables, and its access to other files.
///
/// Precedence, lowest first: the default, the environment, `variable_files` in order, `variables` in
/// order.
#[derive(Clone, Default)]
pub struct Inputs {
    /// Name and value of `-var name=value`: plain text for strings, numbers and untyped variables, an
    /// HCL expression for all others.
    pub variables: Vec<(String, String)>,
    /// File name (for messages) and text, HCL or JSON, of `-var-file`.
    pub variable_files: Vec<(String, String)>,
    /// Only `NOMAD_VAR_<name>` and `KAFILA_VAR_<name>` are used; the latter wins.
    pub environment: BTreeMap<String, String>,
    /// Values for variables that the file does not declare: a warning when true, else an error.
    pub allow_undeclared: bool,
    /// File access of functions such as `file("motd")`; `None` disables them. It resolves relative
    /// paths.
    pub read_file: Option<ReadFile>,
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Variables and environment may contain secrets.
        let names: Vec<&str> = self
            .variables
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let files: Vec<&str> = self
            .variable_files
            .iter()
            .map(|(file, _)| file.as_str())
            .collect();
        f.debug_struct("Inputs")
            .field("variables", &names)
            .field("variable_files", &files)
            .field("allow_undeclared", &self.allow_undeclared)
            .field("read_file", &self.read_file.is_some())
            .finish_non_exhaustive()
    }
}
