//! What a job file may look at beside its own text.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Reads a file for the functions `file`, `filebase64` and `fileexists`.
pub type ReadFile = Arc<dyn Fn(&Path) -> std::io::Result<Vec<u8>> + Send + Sync>;

/// Values for a job file's variables, and the files that it may read.
///
/// A variable takes its value from the last of these that has one: its default, the environment,
/// `variable_files` in order, `variables` in order.
#[derive(Clone, Default)]
pub struct Inputs {
    /// Name and value, as `-var name=value` gives them: plain text for variables of type string
    /// or number and for untyped ones, an HCL expression for all others.
    pub variables: Vec<(String, String)>,
    /// File name (for messages) and text, HCL or JSON, as `-var-file` gives them.
    pub variable_files: Vec<(String, String)>,
    /// Only `NOMAD_VAR_<name>` and `KAFILA_VAR_<name>` are looked at; the latter wins.
    pub environment: BTreeMap<String, String>,
    /// Values for variables that the file does not declare: a warning when true, else an error.
    pub allow_undeclared: bool,
    /// How functions such as `file("motd")` read; `None` where files are out of reach, as on a
    /// server. Relative paths are the reader's to resolve.
    pub read_file: Option<ReadFile>,
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of variables may be secrets, and so may the environment.
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
