//! A task's user, and the owner of its token files.

use std::os::unix::fs::chown;
use std::path::Path;

use task_drivers::UserSource;

/// The user of a task: a name, `uid` or `uid:gid`; empty: the driver's choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskUser {
    pub(crate) user: String,
    pub(crate) source: UserSource,
}

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

/// Finds the task's user, and makes the directory `secrets` its own.
pub(super) fn of(user: &TaskUser, secrets: &Path) -> Owner {
    let Some(owner) = parse(user) else {
        return Owner::Unknown;
    };
    // An unprivileged agent keeps the files: its tasks run as the agent's user.
    match chown(secrets, owner.uid(), owner.gid()) {
        Ok(()) => owner,
        Err(_) => Owner::Unknown,
    }
}

fn parse(TaskUser { user, source }: &TaskUser) -> Option<Owner> {
    if user.is_empty() {
        // An image may name a user of its own.
        return (*source == UserSource::Node).then_some(Owner::Agent);
    }
    let (name, group) = match user.split_once(':') {
        Some((name, group)) => (name, Some(group)),
        None => (user.as_str(), None),
    };
    if let Ok(uid) = name.parse() {
        let gid = group.map(str::parse).transpose().ok()?;
        return Some(Owner::User { uid, gid });
    }
    if *source == UserSource::Image {
        // The node's user of the same name may have another number.
        return None;
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
        let parse = |user: &str, source| {
            let user = user.to_owned();
            parse(&TaskUser { user, source })
        };
        for (name, of_node, of_image) in [
            ("", Some(Owner::Agent), None),
            ("1000", user(1000, None), user(1000, None)),
            ("1000:2000", user(1000, Some(2000)), user(1000, Some(2000))),
            ("root", user(0, Some(0)), None),
            ("no-such-user", None, None),
            ("1000:staff", None, None),
        ] {
            assert_eq!(parse(name, UserSource::Node), of_node, "{name}");
            assert_eq!(parse(name, UserSource::Image), of_image, "{name}");
        }
    }
}
