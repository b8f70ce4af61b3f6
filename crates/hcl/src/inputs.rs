//! Inputs of a file: variables, environment and file access.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files that a file's functions may read. Relative paths start at the working directory.
pub trait Files: Send + Sync {
    /// Returns the content of a file.
    ///
    /// # Errors
    /// The file is not there, or cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns the regular files below a directory, relative to it, at most `limit` of them.
    ///
    /// # Errors
    /// The directory is not there or cannot be read, or has more files.
    fn list(&self, directory: &Path, limit: usize) -> io::Result<Vec<PathBuf>>;

    /// Returns the working directory.
    ///
    /// # Errors
    /// It is not there any more.
    fn working_directory(&self) -> io::Result<PathBuf>;

    /// Returns the user's home directory, if the user has one.
    fn home(&self) -> Option<PathBuf>;
}

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
    /// File access of functions such as `file("motd")`; `None` disables them.
    pub files: Option<Arc<dyn Files>>,
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
            .field("files", &self.files.is_some())
            .finish_non_exhaustive()
    }
}
