//! Files below a directory: no path, and no symbolic link that a task left, leads out of it.
//!
//! The kernel resolves each path beneath the directory's descriptor (`openat2`, Linux 5.6).

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2, renameat};
use nix::sys::stat::{Mode, fchmod, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, unlinkat};

/// The mode of directories that a file's path needs.
const FOLDER_MODE: u32 = 0o777;

/// An open directory.
pub(crate) struct Folder {
    descriptor: OwnedFd,
}

/// A file to write.
pub(crate) struct Content<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) mode: u32,
    /// `None`: the agent's.
    pub(crate) uid: Option<u32>,
    /// `None`: the agent's.
    pub(crate) gid: Option<u32>,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        if !file.metadata()?.is_dir() {
            return Err(io::Error::other(format!(
                "{} is not a directory",
                path.display()
            )));
        }
        Ok(Self {
            descriptor: file.into(),
        })
    }

    /// The bytes of a regular file. Links may lead to other files below the directory.
    ///
    /// # Errors
    /// The file is missing, outside of the directory, not a regular file or larger than `size_max`.
    pub(crate) fn read(&self, path: &Path, size_max: usize) -> io::Result<Vec<u8>> {
        // Without O_NONBLOCK, a named pipe would block until it has a writer.
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let how = OpenHow::new()
            .flags(flags)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        let file = File::from(openat2(&self.descriptor, path, how)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(size_max).unwrap_or(u64::MAX);
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() > size_max {
            return Err(io::Error::other(format!(
                "it is larger than {size_max} bytes"
            )));
        }
        Ok(bytes)
    }

    /// Writes a file, whose path is relative and plain, with the directories above it. Atomic: readers see
    /// the old bytes or the new ones. No link is followed.
    ///
    /// # Errors
    /// A part of the path is a link or not a directory, or the system's error.
    pub(crate) fn write(&self, path: &Path, content: &Content<'_>) -> io::Result<()> {
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::other("the path names no file"))?;
        let folder = self.make_parents(path.parent().unwrap_or(Path::new("")))?;
        let mut part = std::ffi::OsString::from(".");
        part.push(name);
        part.push(".kafila-part");
        // Left by an agent that died while it wrote.
        let _ = unlinkat(&folder, &*part, UnlinkatFlags::NoRemoveDir);
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let how = OpenHow::new()
            .flags(flags)
            .mode(Mode::from_bits_truncate(0o600))
            .resolve(strict());
        let mut file = File::from(openat2(&folder, &*part, how)?);
        let written =
            fill(&mut file, content).and_then(|()| Ok(renameat(&folder, &*part, &folder, name)?));
        if written.is_err() {
            let _ = unlinkat(&folder, &*part, UnlinkatFlags::NoRemoveDir);
        }
        written
    }

    /// Opens a directory below this one; creates what is missing.
    fn make_parents(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut folder = self.descriptor.try_clone()?;
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(io::Error::other("the path is not plain"));
            };
            match mkdirat(&folder, name, Mode::from_bits_truncate(FOLDER_MODE)) {
                Ok(()) | Err(nix::errno::Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            folder = openat2(&folder, name, OpenHow::new().flags(flags).resolve(strict()))?;
        }
        Ok(folder)
    }
}

fn strict() -> ResolveFlag {
    ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS
}

fn fill(file: &mut File, content: &Content<'_>) -> io::Result<()> {
    file.write_all(content.bytes)?;
    if content.uid.is_some() || content.gid.is_some() {
        fchown(
            file.as_fd(),
            content.uid.map(Uid::from_raw),
            content.gid.map(Gid::from_raw),
        )?;
    }
    // After the owner: a change of the owner clears some bits of the mode. The umask does not apply.
    fchmod(file.as_fd(), Mode::from_bits_truncate(content.mode))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn content(bytes: &[u8]) -> Content<'_> {
        Content {
            bytes,
            mode: 0o640,
            uid: None,
            gid: None,
        }
    }

    #[test]
    fn a_file_is_replaced_with_its_mode_and_owner_and_leaves_no_part() {
        let base = tempfile::tempdir().unwrap();
        let folder = Folder::open(base.path()).unwrap();
        let path = Path::new("a/b/app.conf");
        folder.write(path, &content(b"one")).unwrap();
        let owner = fs::metadata(base.path()).unwrap();
        let with_owner = Content {
            uid: Some(owner.uid()),
            gid: Some(owner.gid()),
            mode: 0o4755,
            ..content(b"two")
        };
        folder.write(path, &with_owner).unwrap();
        let written = base.path().join(path);
        assert_eq!(fs::read(&written).unwrap(), b"two");
        assert_eq!(
            fs::metadata(&written).unwrap().permissions().mode() & 0o7777,
            0o4755
        );
        assert_eq!(fs::read_dir(base.path().join("a/b")).unwrap().count(), 1);
        assert_eq!(folder.read(path, 3).unwrap(), b"two");
        assert!(
            folder
                .read(path, 2)
                .unwrap_err()
                .to_string()
                .contains("larger than 2 bytes")
        );
    }

    #[test]
    fn links_of_a_task_lead_no_write_elsewhere() {
        let (base, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = Folder::open(base.path()).unwrap();
        symlink(elsewhere.path(), base.path().join("local")).unwrap();
        assert!(folder.write(Path::new("local/x"), &content(b"x")).is_err());
        // Nor into another part of it: a file for `local` does not land in `secrets`.
        fs::create_dir(base.path().join("secrets")).unwrap();
        symlink("secrets", base.path().join("inner")).unwrap();
        assert!(folder.write(Path::new("inner/x"), &content(b"x")).is_err());
        let victim = elsewhere.path().join("victim");
        fs::write(&victim, "kept").unwrap();
        // The link itself is replaced.
        symlink(&victim, base.path().join("x")).unwrap();
        folder.write(Path::new("x"), &content(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(fs::read_to_string(base.path().join("x")).unwrap(), "new");
        // The name of the part is a link.
        symlink(&victim, base.path().join(".y.kafila-part")).unwrap();
        folder.write(Path::new("y"), &content(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    }

    #[test]
    fn reads_stay_below_the_directory_and_do_not_block() {
        let (base, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = Folder::open(base.path()).unwrap();
        fs::write(elsewhere.path().join("secret"), "s").unwrap();
        symlink(elsewhere.path().join("secret"), base.path().join("out")).unwrap();
        symlink("/proc/self/environ", base.path().join("proc")).unwrap();
        fs::write(base.path().join("in"), "fine").unwrap();
        symlink("in", base.path().join("link")).unwrap();
        nix::unistd::mkfifo(&base.path().join("pipe"), Mode::from_bits_truncate(0o600)).unwrap();
        for path in ["out", "proc", "../x", "pipe", ".", "missing"] {
            assert!(folder.read(Path::new(path), 10).is_err(), "{path}");
        }
        assert_eq!(folder.read(Path::new("link"), 10).unwrap(), b"fine");
    }
}
