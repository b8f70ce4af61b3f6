//! Destinations: places below a task's directory or the directory that an allocation's tasks share.

use std::path::{Component, Path, PathBuf};

/// A destination; the path is relative and plain, and empty for the directory itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Below the task's own directory.
    Task(PathBuf),
    /// Below the directory that the allocation's tasks share.
    Shared(PathBuf),
}

impl Place {
    /// Returns the place that a destination names; `None` if it is outside of both directories.
    ///
    /// A destination is relative to the task's directory, with or without a slash at its start; `/alloc/…`
    /// and `../alloc/…` are in the shared directory. Only the text is read, no link is followed.
    pub fn at(destination: &str) -> Option<Self> {
        const TASK: &str = "<task>";
        if destination.contains('\0') {
            return None;
        }
        let (mut parts, rest) = match destination.strip_prefix("/alloc") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => (vec!["alloc"], rest),
            _ => (vec![TASK], destination),
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

    pub fn path(&self) -> &Path {
        match self {
            Self::Task(path) | Self::Shared(path) => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_stay_below_the_allocation() {
        let task = |path: &str| Some(Place::Task(path.into()));
        let shared = |path: &str| Some(Place::Shared(path.into()));
        for (destination, want) in [
            ("local/", task("local")),
            ("local", task("local")),
            ("/local/scripts", task("local/scripts")),
            ("./tmp/", task("tmp")),
            ("", task("")),
            ("/", task("")),
            ("/tmp/", task("tmp")),
            ("local/../secrets/x", task("secrets/x")),
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
            assert_eq!(Place::at(destination), want, "{destination:?}");
        }
    }
}
