//! Entries, written below a directory. No entry is written through a link, and none replaces another.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use artifact::{Budget, entry};
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::{UnlinkatFlags, linkat, symlinkat, unlinkat};

use crate::beneath;
use crate::helper::disk_space::DiskSpaceGuard;

pub(super) struct Tree {
    root: OwnedFd,
    budget: Budget,
    disk_space: DiskSpaceGuard,
    /// Set at the end: a directory without the right to write could not be filled.
    modes: Vec<(PathBuf, u32)>,
    /// The directory of the last entry: archives list a directory's entries in a row.
    last: Option<(PathBuf, OwnedFd)>,
}

impl Tree {
    pub(super) fn create(path: &Path, budget: Budget) -> Result<Self, String> {
        let created = fs::create_dir(path).and_then(|()| beneath::open(path));
        Ok(Self {
            root: created.map_err(|error| format!("cannot create the directory: {error}"))?,
            budget,
            disk_space: DiskSpaceGuard::default(),
            modes: Vec::new(),
            last: None,
        })
    }

    /// Counts an entry and returns its path; empty for the root.
    fn begin(&mut self, name: &Path) -> Result<PathBuf, String> {
        self.budget.entry().map_err(|spent| about(name, spent))?;
        entry::path(name).map_err(|hostile| about(name, hostile))
    }

    pub(super) fn directory(&mut self, name: &Path, mode: u32) -> Result<(), String> {
        let path = self.begin(name)?;
        self.last = None;
        beneath::make_directory(&self.root, &path).map_err(|error| about(name, error))?;
        if !path.as_os_str().is_empty() {
            self.modes.push((path, entry::mode(mode, true)));
        }
        Ok(())
    }

    /// Writes a file; `content` may be longer than the archive says, and is counted.
    pub(super) fn file(
        &mut self,
        name: &Path,
        mode: u32,
        content: &mut dyn Read,
    ) -> Result<(), String> {
        let path = self.begin(name)?;
        let (folder, file_name) = self.place(name, &path)?;
        let mut file =
            beneath::create(folder, file_name.as_ref()).map_err(|error| about(name, error))?;
        self.copy(name, content, &mut file)?;
        fchmod(
            file.as_fd(),
            Mode::from_bits_truncate(entry::mode(mode, false)),
        )
        .map_err(|error| about(name, error))
    }

    pub(super) fn symlink(&mut self, name: &Path, target: &Path) -> Result<(), String> {
        let path = self.begin(name)?;
        entry::link(&path, target).map_err(|hostile| about(name, hostile))?;
        let (folder, file_name) = self.place(name, &path)?;
        symlinkat(target, folder, Path::new(&file_name)).map_err(|error| about(name, error))
    }

    /// Writes another name of a file that the archive had before.
    pub(super) fn hard_link(&mut self, name: &Path, target: &Path) -> Result<(), String> {
        let path = self.begin(name)?;
        let target = entry::path(target)
            .map_err(|_| about(name, "its hard link leads out of the destination"))?;
        let missing = |error| about(name, format!("its hard link leads to no file: {error}"));
        let from = beneath::make_directory(&self.root, parent(&target)).map_err(missing)?;
        let from_name = file_name(name, &target)?;
        // Refuses what is no regular file, a symbolic link above all.
        beneath::open_file(&from, from_name.as_ref()).map_err(missing)?;
        let (folder, file_name) = self.place(name, &path)?;
        linkat(
            &from,
            Path::new(&from_name),
            folder,
            Path::new(&file_name),
            AtFlags::empty(),
        )
        .map_err(|error| about(name, error))
    }

    pub(super) fn special(&self, name: &Path) -> String {
        about(name, entry::RejectedEntry::Special)
    }

    /// Sets the modes of directories.
    pub(super) fn finish(mut self) -> Result<(), String> {
        // Children before their parents.
        while let Some((path, mode)) = self.modes.pop() {
            let folder = beneath::make_directory(&self.root, &path);
            let folder = folder.map_err(|error| about(&path, error))?;
            fchmod(folder.as_fd(), Mode::from_bits_truncate(mode))
                .map_err(|error| about(&path, error))?;
        }
        Ok(())
    }

    /// Returns the directory of an entry, in which its name is free, and the name. A later entry of one
    /// name replaces a file or a link, as archives that were appended to have it.
    fn place(&mut self, name: &Path, path: &Path) -> Result<(&OwnedFd, PathBuf), String> {
        let file_name = file_name(name, path)?;
        let above = parent(path);
        if self.last.as_ref().is_none_or(|(last, _)| last != above) {
            let folder = beneath::make_directory(&self.root, above);
            let folder = folder.map_err(|error| {
                match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                    Errno::ELOOP | Errno::ENOTDIR | Errno::EXDEV => about(
                        name,
                        "a link or a file is in the place of a directory above it",
                    ),
                    _ => about(name, error),
                }
            })?;
            self.last = Some((above.to_owned(), folder));
        }
        let (_, folder) = self.last.as_ref().ok_or("no directory")?;
        match unlinkat(folder, &file_name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok((folder, file_name)),
            Err(error) => Err(about(name, error)),
        }
    }

    fn copy(&mut self, name: &Path, content: &mut dyn Read, file: &mut File) -> Result<(), String> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = match content.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(about(name, format!("it cannot be read: {error}"))),
            };
            let bytes = u64::try_from(count).unwrap_or(u64::MAX);
            self.budget
                .bytes(bytes)
                .map_err(|spent| about(name, spent))?;
            self.disk_space
                .wrote(bytes)
                .map_err(|full| about(name, full))?;
            file.write_all(&buffer[..count])
                .map_err(|error| about(name, format!("it cannot be written: {error}")))?;
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn file_name(name: &Path, path: &Path) -> Result<PathBuf, String> {
    let file_name = path.file_name().map(PathBuf::from);
    file_name.ok_or_else(|| about(name, "its name is that of the destination"))
}

/// Returns an error about an entry.
pub(super) fn about(name: &Path, problem: impl std::fmt::Display) -> String {
    let shown: String = name.to_string_lossy().chars().take(200).collect();
    format!("archive entry {shown:?}: {problem}")
}
