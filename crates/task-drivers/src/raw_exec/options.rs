//! Options of a `raw_exec` task, and the lookup of its program and user.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use model::glob::glob_matches;
use serde::Deserialize;

use crate::dirs::TaskDirs;
use crate::driver::StartError;

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
        let found = env::split_paths(&searched)
            .map(|directory| directory.join(command))
            .find(|path| is_executable(path));
        found.ok_or_else(|| StartError::Failed {
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

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
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

/// Another user than the agent's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    name: String,
    home: PathBuf,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl User {
    /// Makes `secrets`, which only its owner can read, the user's. Without the directory there is
    /// nothing to own.
    pub(super) fn own(&self, secrets: &Path) -> Result<(), StartError> {
        match chown(secrets, Some(self.uid), Some(self.gid)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StartError::Failed {
                message: format!(
                    "cannot make {} the directory of user {:?}: {error}",
                    secrets.display(),
                    self.name
                ),
                recoverable: false,
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn variables(&self) -> [(String, String); 3] {
        [
            ("USER".to_owned(), self.name.clone()),
            ("LOGNAME".to_owned(), self.name.clone()),
            ("HOME".to_owned(), self.home.display().to_string()),
        ]
    }
}

/// Looks up the user called `name`; an empty name is the agent's own user.
pub(super) fn user(name: &str) -> Result<Option<User>, StartError> {
    if name.is_empty() {
        return Ok(None);
    }
    let fail = |message| StartError::Failed {
        message,
        recoverable: false,
    };
    let found = nix::unistd::User::from_name(name)
        .map_err(|error| fail(format!("cannot look up user {name:?}: {error}")))?
        .ok_or_else(|| fail(format!("user {name:?} does not exist on this node")))?;
    Ok(Some(User {
        name: found.name,
        home: found.dir,
        uid: found.uid.as_raw(),
        gid: found.gid.as_raw(),
    }))
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

    #[test]
    fn users_are_looked_up_by_name() {
        assert_eq!(user("").unwrap(), None);
        assert_eq!(user("root").unwrap().unwrap().uid, 0);
        let error = user("no-such-user").unwrap_err().to_string();
        assert!(error.contains("\"no-such-user\" does not exist"), "{error}");
    }
}
