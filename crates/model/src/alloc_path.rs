//! Paths of job files: below a task's directory, or below the directory that an allocation's tasks share.

use std::path::{Component, Path, PathBuf};

/// A path of an allocation; relative and plain, and empty for the directory itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocPath {
    /// Below the task's own directory.
    Task(PathBuf),
    /// Below the directory that the allocation's tasks share.
    Shared(PathBuf),
}

impl AllocPath {
    /// Returns the place that `path` names; `None` if it is outside of both directories.
    ///
    /// A path is relative to the task's directory, with or without a slash at its start; `/alloc/…` and
    /// `../alloc/…` are in the shared directory. Only the text of the path is read, no link is followed.
    pub fn at(path: &str) -> Option<Self> {
        const TASK: &str = "<task>";
        if path.contains('\0') {
            return None;
        }
        let (mut parts, rest) = match path.strip_prefix("/alloc") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => (vec!["alloc"], rest),
            _ => (vec![TASK], path),
        };
        for component in Path::new(rest).components() {
            match component {
                Component::Normal(name) => parts.push(name.to_str()?),
                Component::ParentDir => {
                    parts.pop()?;
                }
                Component::CurDir | Component::RootDir => {}
                Component::Prefix(_) => return None,
            }
        }
        let (first, rest) = parts.split_first()?;
        let path = rest.iter().collect();
        match *first {
            TASK => Some(Self::Task(path)),
            "alloc" => Some(Self::Shared(path)),
            _ => None,
        }
    }

    /// Returns the file that `path` names, as [`Self::at`]; neither directory is a file.
    pub fn file(path: &str) -> Option<Self> {
        let found = Self::at(path).filter(|_| !path.ends_with('/'))?;
        (!found.path().as_os_str().is_empty()).then_some(found)
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Task(path) | Self::Shared(path) => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(path: &str) -> Option<AllocPath> {
        Some(AllocPath::Task(path.into()))
    }

    fn shared(path: &str) -> Option<AllocPath> {
        Some(AllocPath::Shared(path.into()))
    }

    #[test]
    fn paths_stay_below_the_allocation() {
        for (path, want) in [
            ("local/", task("local")),
            ("local", task("local")),
            ("/local/scripts", task("local/scripts")),
            ("./tmp/", task("tmp")),
            ("", task("")),
            ("/", task("")),
            ("/tmp/", task("tmp")),
            ("local/../secrets/./x", task("secrets/x")),
            ("../alloc/data", shared("data")),
            ("../alloc", shared("")),
            ("/alloc/", shared("")),
            ("/alloc/data/x", shared("data/x")),
            ("/allocation", task("allocation")),
            ("alloc/x", task("alloc/x")),
            ("..", None),
            ("../../x", None),
            ("../other/local", None),
            ("/alloc/../x", None),
            ("local/../../../etc", None),
            ("a\0b", None),
        ] {
            assert_eq!(AllocPath::at(path), want, "{path:?}");
        }
    }

    #[test]
    fn a_file_is_no_directory_of_the_allocation() {
        for (path, want) in [
            ("local/app.conf", task("local/app.conf")),
            ("/secrets/key.pem", task("secrets/key.pem")),
            ("/alloc/data/x", shared("data/x")),
            ("", None),
            ("/", None),
            ("local/", None),
            ("../alloc", None),
            ("/alloc", None),
            ("../../../etc/passwd", None),
        ] {
            assert_eq!(AllocPath::file(path), want, "{path:?}");
        }
    }
}
