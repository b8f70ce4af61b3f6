//! Options of a `raw_exec` task, and the lookup of its program and user.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::glob::glob_matches;
use serde::Deserialize;

use crate::dirs::TaskDirs;
use crate::driver::StartError;
use crate::program::{self, is_executable};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {
    pub(super) command: String,
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// Absolute.
    #[serde(default)]
    pub(super) work_dir: Option<PathBuf>,
    /// -1000 to 1000.
    #[serde(default)]
    pub(super) oom_score_adj: i32,
    /// Patterns of host variables that this task does not inherit.
    #[serde(default)]
    denied_envvars: Vec<String>,
}

impl Options {
    /// Looks the program up: in `local/`, in the task's directory, as an absolute path, in PATH. A
    /// file of the task is made executable.
    pub(super) fn find_command(&self, dirs: &TaskDirs) -> Result<PathBuf, StartError> {
        let command = self.command.trim();
        if command.is_empty() {
            return Err(StartError::Config(
                "command: is empty: name a program".to_owned(),
            ));
        }
        if self
            .work_dir
            .as_ref()
            .is_some_and(|work_dir| !work_dir.is_absolute())
        {
            return Err(StartError::Config(
                "work_dir: want an absolute path".to_owned(),
            ));
        }
        for own in [&dirs.local, &dirs.root] {
            let path = own.join(command.trim_start_matches('/'));
            if path.is_file() {
                make_executable(&path)?;
                return Ok(path);
            }
        }
        let path = Path::new(command);
        if path.is_absolute() {
            return Ok(path.to_owned());
        }
        let searched = env::var_os("PATH").unwrap_or_default();
        program::find(command, &searched).ok_or_else(|| StartError::Failed {
            message: format!("program {command:?} is neither in the task's directory nor in PATH"),
            recoverable: false,
        })
    }

    pub(super) fn deny(&self, env: &mut BTreeMap<String, String>) {
        env.retain(|name, _| {
            !self
                .denied_envvars
                .iter()
                .any(|pattern| glob_matches(pattern, name))
        });
    }
}

fn make_executable(path: &Path) -> Result<(), StartError> {
    if is_executable(path) {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(|error| {
        let message = format!("cannot make {} executable: {error}", path.display());
        StartError::Failed {
            message,
            recoverable: false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirs::AllocDirs;

    fn options(config: serde_json::Value) -> Options {
        serde_json::from_value(config).unwrap()
    }

    fn find(command: &str, dirs: &TaskDirs) -> Result<PathBuf, StartError> {
        options(serde_json::json!({ "command": command })).find_command(dirs)
    }

    #[test]
    fn the_tasks_own_directories_come_before_path() {
        let base = tempfile::tempdir().unwrap();
        let dirs = AllocDirs::new(base.path(), model::AllocId::from_random(1)).task("web");
        fs::create_dir_all(&dirs.local).unwrap();
        assert!(find("sh", &dirs).unwrap().is_absolute());
        assert_eq!(
            find("/bin/no-such-program", &dirs).unwrap(),
            Path::new("/bin/no-such-program")
        );
        fs::write(dirs.root.join("sh"), "#!/bin/sh\n").unwrap();
        assert_eq!(find("sh", &dirs).unwrap(), dirs.root.join("sh"));
        assert!(is_executable(&dirs.root.join("sh")));
        fs::write(dirs.local.join("sh"), "#!/bin/sh\n").unwrap();
        assert_eq!(find("sh", &dirs).unwrap(), dirs.local.join("sh"));
        let error = find("no-such-program", &dirs).unwrap_err().to_string();
        assert!(error.contains("\"no-such-program\" is neither"), "{error}");
        assert!(find(" ", &dirs).is_err());
    }
}
