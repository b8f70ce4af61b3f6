//! The Java virtual machine of the node: its program, where tasks see it, and its version.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::version::{self, Version};
use crate::exec::Exec;
use crate::program::{self, Versions};

/// Name of the program.
const PROGRAM: &str = "java";

/// A machine that tasks can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    /// The program, as tasks see it.
    pub(super) inside: PathBuf,
    pub(super) version: Version,
}

/// The look-up of the machine.
#[derive(Debug)]
pub(super) struct Lookup {
    /// Directories of programs.
    search: OsString,
    versions: Versions,
    /// The last result.
    found: Mutex<Result<Machine, String>>,
}

impl Lookup {
    pub(super) fn new(search: OsString) -> Self {
        Self {
            search,
            versions: Versions::default(),
            found: Mutex::new(Err("not probed yet".to_owned())),
        }
    }

    /// Looks the machine up, and keeps the result.
    pub(super) async fn refresh(&self, exec: &Exec) {
        let found = self.look_up(exec).await;
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// Returns the last result.
    pub(super) fn last(&self) -> Result<Machine, String> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.clone()
    }

    async fn look_up(&self, exec: &Exec) -> Result<Machine, String> {
        let found = program::find(PROGRAM, &self.search);
        let found = found.ok_or_else(|| "no program java in the agent's PATH".to_owned())?;
        let said = self.versions.ask(&found, "-version").await?;
        let version = version::parse(&said)
            .ok_or_else(|| format!("{} -version names no version: {said:?}", found.display()))?;
        // Links of the node, as of its alternatives, may lead through directories that tasks do not see.
        let file = found
            .canonicalize()
            .map_err(|error| format!("{}: {error}", found.display()))?;
        let inside = exec.path_inside(&file).ok_or_else(|| {
            format!(
                "tasks do not see {}: add its directory to drivers.exec.chroot_env",
                file.display()
            )
        })?;
        Ok(Machine { inside, version })
    }
}
