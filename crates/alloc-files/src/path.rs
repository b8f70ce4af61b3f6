//! Paths in an allocation's directory: plain paths that neither leave it nor lead to secrets.

use std::fmt;
use std::path::Path;

use crate::error::Error;

/// The directories of a task that only the task reads. Source: Nomad's names of them.
const PRIVATE: [&str; 2] = ["secrets", "private"];
/// The directory that the tasks share; it has no private directories.
const SHARED: &str = "alloc";

/// A path from the directory of an allocation, without `.` and `..`. Its text begins with a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath(Vec<String>);

impl FilePath {
    /// Reads a path of a user: with or without a slash in front, `..` taken off as text.
    ///
    /// # Errors
    /// [`Error::Escapes`], or [`Error::Secret`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let path = || text.to_owned();
        let mut parts: Vec<String> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_some() => {}
                ".." => return Err(Error::Escapes { path: path() }),
                part => parts.push(part.to_owned()),
            }
        }
        if let [task, directory, ..] = &parts[..]
            && task != SHARED
            && PRIVATE.contains(&directory.as_str())
        {
            return Err(Error::Secret { path: path() });
        }
        Ok(Self(parts))
    }

    /// Returns the path from the directory's descriptor: never empty, never absolute.
    pub(crate) fn relative(&self) -> String {
        match self.0.as_slice() {
            [] => ".".to_owned(),
            parts => parts.join("/"),
        }
    }

    /// Returns the last part; of the directory itself a slash.
    pub(crate) fn name(&self) -> &str {
        self.0.last().map_or("/", String::as_str)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Path::new("/").join(self.0.join("/")).display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_allocation() {
        for (text, want) in [
            ("", "/"),
            ("/", "/"),
            ("alloc/logs/", "/alloc/logs"),
            ("/web/./local//x", "/web/local/x"),
            ("web/../alloc", "/alloc"),
            ("web/..", "/"),
            ("alloc/secrets", "/alloc/secrets"),
            ("web/local/secrets", "/web/local/secrets"),
            ("secrets", "/secrets"),
        ] {
            assert_eq!(FilePath::parse(text).unwrap().to_string(), want, "{text:?}");
        }
        for text in ["..", "/..", "web/../..", "web/../../web", "../x"] {
            let refused = FilePath::parse(text).unwrap_err();
            assert!(matches!(refused, Error::Escapes { .. }), "{text:?}");
        }
    }

    #[test]
    fn scenario_073_secrets_are_refused_however_they_are_written() {
        for text in [
            "web/secrets",
            "/web/secrets/",
            "web//./secrets/api.token",
            "web/local/../secrets/x",
            "x/../web/private/y",
        ] {
            let refused = FilePath::parse(text).unwrap_err();
            assert!(matches!(refused, Error::Secret { .. }), "{text:?}");
        }
    }
}
