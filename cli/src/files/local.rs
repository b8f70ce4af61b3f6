//! The files of this machine, for the functions of job files and settings.

use std::io;
use std::path::{Path, PathBuf};

use jobspec::Files;

/// Files as the user of the command can read them.
pub(super) struct LocalFiles;

impl Files for LocalFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn list(&self, directory: &Path, limit: usize) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        let mut left = vec![PathBuf::new()];
        while let Some(below) = left.pop() {
            for entry in std::fs::read_dir(directory.join(&below))? {
                let entry = entry?;
                let path = below.join(entry.file_name());
                // A link to a directory is not followed: it may lead back.
                if entry.file_type()?.is_dir() {
                    left.push(path);
                } else if entry.path().is_file() {
                    files.push(path);
                }
                if files.len() + left.len() > limit {
                    return Err(io::Error::other(format!(
                        "it has more than {limit} files and directories"
                    )));
                }
            }
        }
        Ok(files)
    }

    fn working_directory(&self) -> io::Result<PathBuf> {
        std::env::current_dir()
    }

    fn home(&self) -> Option<PathBuf> {
        std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lists_regular_files_below_a_directory_and_stops_at_the_limit() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        for name in ["one", "a/two", "a/b/three"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("..", root.path().join("a/loop")).unwrap();
        let mut files = LocalFiles.list(root.path(), 10).unwrap();
        files.sort();
        assert_eq!(files, ["a/b/three", "a/two", "one"].map(PathBuf::from));
        let error = LocalFiles.list(root.path(), 2).unwrap_err().to_string();
        assert!(error.contains("more than 2"), "{error}");
    }
}
