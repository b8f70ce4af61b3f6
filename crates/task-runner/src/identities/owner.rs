//! The owner of a task's token files.

use std::os::unix::fs::chown;
use std::path::Path;

/// The owner of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The agent's user.
    Agent,
    User {
        uid: u32,
        gid: Option<u32>,
    },
    /// A user that only an image knows, or one that this agent may not give files to.
    Unknown,
}

impl Owner {
    pub(super) fn uid(self) -> Option<u32> {
        match self {
            Self::User { uid, .. } => Some(uid),
            Self::Agent | Self::Unknown => None,
        }
    }

    pub(super) fn gid(self) -> Option<u32> {
        match self {
            Self::User { gid, .. } => gid,
            Self::Agent | Self::Unknown => None,
        }
    }
}

/// Finds the task's user, and makes the directory `secrets` its own. `user` is a name, `uid` or
/// `uid:gid`; empty: the agent's.
pub(super) fn of(user: &str, secrets: &Path) -> Owner {
    let Some(owner) = parse(user) else {
        return Owner::Unknown;
    };
    // Without privileges the files stay the agent's, who also runs the tasks.
    match chown(secrets, owner.uid(), owner.gid()) {
        Ok(()) => owner,
        Err(_) => Owner::Unknown,
    }
}

fn parse(user: &str) -> Option<Owner> {
    if user.is_empty() {
        return Some(Owner::Agent);
    }
    let (name, group) = match user.split_once(':') {
        Some((name, group)) => (name, Some(group)),
        None => (user, None),
    };
    if let Ok(uid) = name.parse() {
        let gid = group.map(str::parse).transpose().ok()?;
        return Some(Owner::User { uid, gid });
    }
    let found = nix::unistd::User::from_name(name).ok()??;
    Some(Owner::User {
        uid: found.uid.as_raw(),
        gid: Some(found.gid.as_raw()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_names_or_numbers() {
        let user = |uid, gid| Some(Owner::User { uid, gid });
        assert_eq!(parse(""), Some(Owner::Agent));
        assert_eq!(parse("1000"), user(1000, None));
        assert_eq!(parse("1000:2000"), user(1000, Some(2000)));
        assert_eq!(parse("root"), user(0, Some(0)));
        assert_eq!(parse("no-such-user"), None);
        assert_eq!(parse("1000:staff"), None);
    }
}
