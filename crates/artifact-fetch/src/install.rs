//! Downloaded files and trees, put to their destination below a task's directory.
//!
//! The destination may be written by tasks at the same time, so every step goes by descriptors, and no
//! link is followed. What the helper left is not trusted: special files and links that leave are refused
//! before anything is moved.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use artifact::entry;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, renameat};
use nix::sys::stat::{Mode, fchmod, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, fchownat, symlinkat, unlinkat};

use crate::beneath;

/// Directories in each other, at most: a tree of the helper is checked by recursion.
const DEPTH_MAX: usize = 200;

/// The form of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A directory for what the source is.
    Any,
    /// The path of one file.
    File,
    /// A directory for an archive or a repository.
    Dir,
}

/// A place to put things.
pub(crate) struct Target<'a> {
    /// The task's directory, or the one that tasks share.
    pub(crate) base: &'a Path,
    /// Plain and relative.
    pub(crate) path: &'a Path,
    /// User and group of the files.
    pub(crate) owner: (u32, u32),
}

/// Copies a file to `target`, executable for all: many are programs.
pub(crate) fn put_file(file: &Path, mode: u32, target: &Target<'_>) -> io::Result<()> {
    let name = target
        .path
        .file_name()
        .ok_or_else(|| io::Error::other("the destination names no file"))?;
    let folder = open_parent(target)?;
    copy_file(&mut File::open(file)?, &folder, name, mode, target.owner)
}

/// Moves the content of the directory `tree` into the directory `target`, which may have other content.
pub(crate) fn put_tree(tree: &Path, target: &Target<'_>) -> io::Result<()> {
    check(tree, Path::new(""), 0)?;
    let base = beneath::open(target.base)?;
    let folder = beneath::make_directory(&base, target.path)?;
    merge(tree, &folder, target.owner)
}

/// Returns the only file of `tree`, at any depth.
pub(crate) fn only_file(tree: &Path) -> io::Result<PathBuf> {
    check(tree, Path::new(""), 0)?;
    let (mut found, mut folders) = (Vec::new(), vec![tree.to_owned()]);
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder)? {
            let item = item?;
            if item.file_type()?.is_dir() {
                folders.push(item.path());
            } else {
                found.push(item.path());
            }
        }
    }
    match found.as_slice() {
        [file] if fs::symlink_metadata(file)?.is_file() => Ok(file.clone()),
        _ => Err(io::Error::other(format!(
            "with `mode = \"file\"` the archive must have one file, and it has {}",
            found.len()
        ))),
    }
}

fn open_parent(target: &Target<'_>) -> io::Result<OwnedFd> {
    let base = beneath::open(target.base)?;
    beneath::make_directory(&base, target.path.parent().unwrap_or(Path::new("")))
}

/// Refuses a tree with special files, or with links that lead out of it.
fn check(folder: &Path, below: &Path, depth: usize) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(io::Error::other("its directories are too deep"));
    }
    for item in fs::read_dir(folder)? {
        let item = item?;
        let (kind, below) = (item.file_type()?, below.join(item.file_name()));
        let about = |problem: entry::RejectedEntry| {
            io::Error::other(format!("{:?}: {problem}", below.to_string_lossy()))
        };
        if kind.is_dir() {
            check(&item.path(), &below, depth + 1)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(item.path())?;
            entry::link(&below, &target).map_err(about)?;
        } else if !kind.is_file() {
            return Err(about(entry::RejectedEntry::Special));
        }
    }
    Ok(())
}

/// Moves each entry of `from`, which is checked, into `to`. Files are replaced, directories are filled.
fn merge(from: &Path, to: &OwnedFd, owner: (u32, u32)) -> io::Result<()> {
    for item in fs::read_dir(from)? {
        let item = item?;
        let (path, name) = (item.path(), item.file_name());
        let about = |error: io::Error| io::Error::other(format!("{}: {error}", name.display()));
        move_entry(&path, to, &name, owner).map_err(about)?;
    }
    Ok(())
}

fn move_entry(path: &Path, to: &OwnedFd, name: &OsStr, owner: (u32, u32)) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_dir() {
        let mode = Mode::from_bits_truncate(entry::mode(found.mode(), true));
        match mkdirat(to, name, mode) {
            Ok(()) => {
                let folder = beneath::open_directory(to, name)?;
                fchown(folder.as_fd(), Some(owner.0.into()), Some(owner.1.into()))?;
                fchmod(folder.as_fd(), mode)?;
                return merge(path, &folder, owner);
            }
            // A file or a link of an earlier artifact or of the task.
            Err(Errno::EEXIST) => return merge(path, &beneath::open_directory(to, name)?, owner),
            Err(error) => return Err(error.into()),
        }
    }
    if found.is_symlink() {
        let target = fs::read_link(path)?;
        remove(to, name)?;
        symlinkat(target.as_path(), to, name)?;
        let (uid, gid) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
        fchownat(to, name, Some(uid), Some(gid), AtFlags::AT_SYMLINK_NOFOLLOW)?;
        return Ok(());
    }
    // The file is in a folder of the helper that has ended: nothing changes it any more.
    let mode = entry::mode(found.permissions().mode(), false);
    std::os::unix::fs::lchown(path, Some(owner.0), Some(owner.1))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    match renameat(AT_FDCWD, path, to, name) {
        Ok(()) => Ok(()),
        Err(Errno::EXDEV) => copy_file(&mut File::open(path)?, to, name, mode, owner),
        Err(error) => Err(error.into()),
    }
}

/// Removes a file or a link in the place of a new one.
fn remove(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(folder, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Copies a file by way of a temporary name: readers see the old file or the new one.
fn copy_file(
    file: &mut File,
    folder: &OwnedFd,
    name: &OsStr,
    mode: u32,
    owner: (u32, u32),
) -> io::Result<()> {
    let mut part = OsString::from(".");
    // A name may have 255 bytes with the rest of the temporary one.
    part.push(OsStr::from_bytes(&name.as_bytes()[..name.len().min(200)]));
    part.push(".kafila-part");
    // Left by an agent that died.
    remove(folder, &part)?;
    let mut copy = beneath::create(folder, &part)?;
    let copied = io::copy(file, &mut copy).and_then(|_| {
        fchown(copy.as_fd(), Some(owner.0.into()), Some(owner.1.into()))?;
        fchmod(copy.as_fd(), Mode::from_bits_truncate(mode))?;
        Ok(renameat(folder, &*part, folder, name)?)
    });
    if copied.is_err() {
        let _ = remove(folder, &part);
    }
    copied
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn target<'a>(base: &'a Path, path: &'a str) -> Target<'a> {
        let owner = (
            nix::unistd::geteuid().as_raw(),
            nix::unistd::getegid().as_raw(),
        );
        Target {
            base,
            path: Path::new(path),
            owner,
        }
    }

    #[test]
    fn a_tree_joins_what_is_there_and_replaces_files() {
        let (from, task) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("bin/deep")).unwrap();
        fs::write(from.path().join("bin/app"), "new").unwrap();
        fs::set_permissions(
            from.path().join("bin/app"),
            fs::Permissions::from_mode(0o4755),
        )
        .unwrap();
        symlink("app", from.path().join("bin/link")).unwrap();
        let local = task.path().join("local");
        fs::create_dir_all(local.join("bin")).unwrap();
        fs::write(local.join("bin/app"), "old").unwrap();
        fs::write(local.join("bin/kept"), "kept").unwrap();
        put_tree(from.path(), &target(task.path(), "local")).unwrap();
        assert_eq!(fs::read_to_string(local.join("bin/link")).unwrap(), "new");
        assert_eq!(fs::read_to_string(local.join("bin/kept")).unwrap(), "kept");
        let mode = fs::metadata(local.join("bin/app")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o755);
        assert!(local.join("bin/deep").is_dir());
    }

    #[test]
    fn nothing_is_written_through_a_link_of_the_task() {
        let (from, task) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(from.path().join("bin")).unwrap();
        fs::write(from.path().join("bin/app"), "x").unwrap();
        symlink(outside.path(), task.path().join("local")).unwrap();
        assert!(put_tree(from.path(), &target(task.path(), "local")).is_err());
        symlink(outside.path(), task.path().join("bin")).unwrap();
        assert!(put_tree(from.path(), &target(task.path(), "")).is_err());
        let file = from.path().join("bin/app");
        assert!(put_file(&file, 0o755, &target(task.path(), "local/app")).is_err());
        // The last part of the path is replaced, not followed.
        symlink(outside.path().join("victim"), task.path().join("app")).unwrap();
        put_file(&file, 0o755, &target(task.path(), "app")).unwrap();
        assert!(
            task.path()
                .join("app")
                .symlink_metadata()
                .unwrap()
                .is_file()
        );
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn trees_with_links_that_leave_or_special_files_are_refused_before_anything_moves() {
        for hostile in ["link", "pipe"] {
            let (from, task) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            fs::write(from.path().join("a"), "x").unwrap();
            fs::create_dir(from.path().join("d")).unwrap();
            if hostile == "link" {
                symlink("../../etc", from.path().join("d/link")).unwrap();
            } else {
                let mode = Mode::from_bits_truncate(0o600);
                nix::unistd::mkfifo(&from.path().join("d/pipe"), mode).unwrap();
            }
            let error = put_tree(from.path(), &target(task.path(), "")).unwrap_err();
            assert!(
                error.to_string().contains(&format!("d/{hostile}")),
                "{error}"
            );
            assert_eq!(fs::read_dir(task.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn an_archive_for_one_file_must_have_one() {
        let from = tempfile::tempdir().unwrap();
        assert!(only_file(from.path()).is_err());
        fs::create_dir(from.path().join("d")).unwrap();
        fs::write(from.path().join("d/a"), "x").unwrap();
        assert_eq!(only_file(from.path()).unwrap(), from.path().join("d/a"));
        fs::write(from.path().join("b"), "x").unwrap();
        assert!(
            only_file(from.path())
                .unwrap_err()
                .to_string()
                .contains("it has 2")
        );
    }
}
