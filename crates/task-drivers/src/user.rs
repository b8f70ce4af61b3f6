//! Users of the node that tasks run as.

use std::ffi::CString;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use crate::driver::StartError;

/// Another user than the agent's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    name: String,
    home: PathBuf,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// Makes `secrets`, which only its owner can read, the user's. Without the directory there is
    /// nothing to own.
    pub(crate) fn own(&self, secrets: &Path) -> Result<(), StartError> {
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

    /// Returns the user's groups.
    pub(crate) fn groups(&self) -> Result<Vec<u32>, StartError> {
        let name = CString::new(self.name.as_str()).unwrap_or_default();
        let found = nix::unistd::getgrouplist(&name, nix::unistd::Gid::from_raw(self.gid));
        let found = found.map_err(|error| StartError::Failed {
            message: format!("cannot look up the groups of user {:?}: {error}", self.name),
            recoverable: true,
        })?;
        Ok(found.into_iter().map(nix::unistd::Gid::as_raw).collect())
    }

    pub(crate) fn variables(&self) -> [(String, String); 3] {
        [
            ("USER".to_owned(), self.name.clone()),
            ("LOGNAME".to_owned(), self.name.clone()),
            ("HOME".to_owned(), self.home.display().to_string()),
        ]
    }
}

/// Looks up the user called `name`; an empty name is the agent's own user.
pub(crate) fn find(name: &str) -> Result<Option<User>, StartError> {
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

    #[test]
    fn users_are_looked_up_by_name() {
        assert_eq!(find("").unwrap(), None);
        assert_eq!(find("root").unwrap().unwrap().uid, 0);
        let error = find("no-such-user").unwrap_err().to_string();
        assert!(error.contains("\"no-such-user\" does not exist"), "{error}");
    }
}
