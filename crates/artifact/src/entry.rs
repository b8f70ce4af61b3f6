//! Entries of an archive that may be written: names and links that stay below the destination.

use std::path::{Component, Path, PathBuf};

/// Bytes of a path, at most. Source: Linux.
const PATH_BYTES_MAX: usize = 4096;
/// Components of a path, at most. Deep paths cost time; real archives have some 20.
const DEPTH_MAX: usize = 128;

/// A name or a link that must not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectedEntry {
    #[error("its name is absolute")]
    Absolute,
    #[error("its name leaves the destination with `..`")]
    Parent,
    #[error("its name is too long or too deep")]
    Long,
    #[error("its name has a NUL byte")]
    Nul,
    #[error("its link leads out of the destination")]
    LinkLeaves,
    #[error("its link has `..` after a name, so that its end is not certain")]
    LinkWinds,
    #[error("it is a device, a pipe or another special file")]
    Special,
}

/// Returns the path of an entry below the destination; empty for the destination itself.
///
/// # Errors
/// The name leaves the destination or is not a path.
pub fn path(name: &Path) -> Result<PathBuf, RejectedEntry> {
    let bytes = name.as_os_str().as_encoded_bytes();
    if bytes.len() > PATH_BYTES_MAX {
        return Err(RejectedEntry::Long);
    }
    if bytes.contains(&0) {
        return Err(RejectedEntry::Nul);
    }
    let mut path = PathBuf::new();
    let mut depth = 0;
    for component in name.components() {
        match component {
            Component::Normal(part) => {
                depth += 1;
                if depth > DEPTH_MAX || part.len() > 255 {
                    return Err(RejectedEntry::Long);
                }
                path.push(part);
            }
            Component::CurDir => {}
            Component::ParentDir => return Err(RejectedEntry::Parent),
            Component::RootDir | Component::Prefix(_) => return Err(RejectedEntry::Absolute),
        }
    }
    Ok(path)
}

/// Checks the target of a symbolic link at `path`, which is a result of [`path()`].
///
/// The target may begin with `..`, as often as the link is deep, and has names only after that. The
/// directories above the link are real ones, so such a target stays below the destination, whatever
/// other links of the same kind are on its way. With `..` after a name, another link could lead out.
///
/// # Errors
/// The target may lead out of the destination.
pub fn link(path: &Path, target: &Path) -> Result<(), RejectedEntry> {
    let bytes = target.as_os_str().as_encoded_bytes();
    if bytes.is_empty() || bytes.len() > PATH_BYTES_MAX || bytes.contains(&0) {
        return Err(RejectedEntry::Long);
    }
    let mut depth = path.components().count().saturating_sub(1);
    let mut is_below = false;
    for component in target.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(_) => is_below = true,
            Component::ParentDir if is_below => return Err(RejectedEntry::LinkWinds),
            Component::ParentDir => {
                depth = depth.checked_sub(1).ok_or(RejectedEntry::LinkLeaves)?;
            }
            Component::RootDir | Component::Prefix(_) => return Err(RejectedEntry::LinkLeaves),
        }
    }
    Ok(())
}

/// Returns the mode of a file or directory: never set-user-ID, set-group-ID or sticky, never writable by
/// others, always readable and writable by its owner.
pub fn mode(mode: u32, is_dir: bool) -> u32 {
    let least = if is_dir { 0o700 } else { 0o600 };
    (mode & 0o755) | least
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scenario_062_names_that_leave_are_refused() {
        for (name, want) in [
            ("a/b", Ok("a/b")),
            ("./a//b/.", Ok("a/b")),
            (".", Ok("")),
            ("...", Ok("...")),
            ("../../etc/x", Err(RejectedEntry::Parent)),
            ("a/../../x", Err(RejectedEntry::Parent)),
            ("a/../b", Err(RejectedEntry::Parent)),
            ("/etc/x", Err(RejectedEntry::Absolute)),
            ("a\0b", Err(RejectedEntry::Nul)),
        ] {
            assert_eq!(path(Path::new(name)), want.map(PathBuf::from), "{name}");
        }
        let deep = "a/".repeat(200);
        let long = "a".repeat(256);
        for name in [deep, long, "a/".repeat(3000)] {
            assert_eq!(path(Path::new(&name)), Err(RejectedEntry::Long));
        }
    }

    #[test]
    fn scenario_062_links_that_leave_are_refused() {
        for (at, target, want) in [
            ("a", "b", Ok(())),
            ("a/b", "../c/d", Ok(())),
            ("a/b/c", "../../d", Ok(())),
            ("a/b", "..", Ok(())),
            ("a", "..", Err(RejectedEntry::LinkLeaves)),
            ("a", "../x", Err(RejectedEntry::LinkLeaves)),
            ("a/b", "../../x", Err(RejectedEntry::LinkLeaves)),
            ("a", "/etc/passwd", Err(RejectedEntry::LinkLeaves)),
            ("g", "d/e/f/../..", Err(RejectedEntry::LinkWinds)),
            ("a", "", Err(RejectedEntry::Long)),
        ] {
            let got = link(Path::new(at), Path::new(target));
            assert_eq!(got, want, "{at} -> {target}");
        }
    }

    #[test]
    fn modes_lose_their_special_bits() {
        assert_eq!(mode(0o4755, false), 0o755);
        assert_eq!(mode(0o6777, false), 0o755);
        assert_eq!(mode(0, false), 0o600);
        assert_eq!(mode(0o1777, true), 0o755);
        assert_eq!(mode(0, true), 0o700);
    }

    proptest! {
        #[test]
        fn a_path_that_is_accepted_stays_below(name in "[./a\\\\]{0,40}") {
            if let Ok(path) = path(Path::new(&name)) {
                let is_plain = path.components().all(|it| matches!(it, Component::Normal(_)));
                prop_assert!(is_plain);
            }
        }

        #[test]
        fn a_link_that_is_accepted_stays_below(at in "(a/){0,3}l", target in "[./a]{1,20}") {
            if link(Path::new(&at), Path::new(&target)).is_ok() {
                let mut depth = at.matches('/').count();
                for component in Path::new(&target).components() {
                    match component {
                        Component::ParentDir => {
                            prop_assert!(depth > 0);
                            depth -= 1;
                        }
                        Component::Normal(_) => depth += 1,
                        _ => {}
                    }
                }
                prop_assert!(!target.starts_with('/'));
            }
        }
    }
}
