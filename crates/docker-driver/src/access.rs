//! Access of the engine to directories of the node that only the agent's user may enter.
//!
//! An engine with the rights of root, or of the agent's user, mounts directories below private ones. An
//! engine with fewer rights fails to, so its tasks keep directories that every user may pass.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Returns whether the engine mounts directories below private ones.
///
/// `security`: the security options of the engine's own description, as in `name=rootless`.
/// Shape: rootless and user-namespaced engines say so there; the socket of a rootless one is its user's.
pub(crate) fn enters_private(security: &[String], socket: &Path) -> bool {
    let has = |name: &str| {
        let names = security.iter().filter_map(|it| it.split(',').next());
        names
            .filter_map(|it| it.strip_prefix("name="))
            .any(|it| it == name)
    };
    if has("userns") {
        return false;
    }
    !has("rootless") || is_own(socket)
}

/// Returns whether the socket belongs to the agent's user.
fn is_own(socket: &Path) -> bool {
    let owner = |path: &Path| fs::metadata(path).map(|found| found.uid());
    match (owner(socket), owner(Path::new("/proc/self"))) {
        (Ok(of_engine), Ok(own)) => of_engine == own,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::enters_private;

    #[test]
    fn an_engine_of_another_user_does_not_enter_private_directories() {
        let own = tempfile::NamedTempFile::new().unwrap();
        let missing = own.path().with_extension("missing");
        for (security, socket, want) in [
            ("name=seccomp,profile=default", &missing, true),
            ("name=userns", &own.path().to_owned(), false),
            ("name=rootless", &own.path().to_owned(), true),
            ("name=rootless", &missing, false),
        ] {
            let found = enters_private(&[security.to_owned()], socket);
            assert_eq!(found, want, "{security} {}", socket.display());
        }
    }
}
