//! The storage system: directories and marks in files, which all processes of the driver share.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tonic::Status;

/// The pause of a call that never answers, longer than any test.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        for name in ["volumes", "snapshots", "attached", "faults"] {
            fs::create_dir_all(root.join(name))?;
        }
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// Notes a call, and performs its fault.
    pub(crate) async fn enter(&self, node: &str, method: &str, volume: &str) -> Result<(), Status> {
        let mut options = OpenOptions::new();
        let opened = options
            .create(true)
            .append(true)
            .open(self.root.join("calls"));
        let written = opened.and_then(|mut file| {
            let line = format!("{node} {method} {volume}\n");
            file.write_all(line.as_bytes())
        });
        written.map_err(failed)?;
        let fault = fs::read_to_string(self.root.join("faults").join(method));
        match fault.as_deref().map(str::trim) {
            Ok("hang") => {
                tokio::time::sleep(FOREVER).await;
                Ok(())
            }
            Ok("fail") => Err(Status::internal("the storage system is out of order")),
            _ => Ok(()),
        }
    }

    pub(crate) fn volumes(&self) -> Result<Vec<String>, Status> {
        names(&self.root.join("volumes"))
    }

    pub(crate) fn snapshots(&self) -> Result<Vec<(String, String)>, Status> {
        let names = names(&self.root.join("snapshots"))?.into_iter();
        names
            .map(|name| {
                let source = fs::read_to_string(self.snapshot(&name)?.join(".source"));
                Ok((name, source.map_err(failed)?))
            })
            .collect()
    }

    pub(crate) fn volume(&self, id: &str) -> Result<PathBuf, Status> {
        Ok(self.root.join("volumes").join(plain(id)?))
    }

    pub(crate) fn existing(&self, id: &str) -> Result<PathBuf, Status> {
        let path = self.volume(id)?;
        if path.is_dir() {
            return Ok(path);
        }
        Err(Status::not_found(format!("there is no volume {id:?}")))
    }

    pub(crate) fn snapshot(&self, id: &str) -> Result<PathBuf, Status> {
        Ok(self.root.join("snapshots").join(plain(id)?))
    }

    /// Returns the nodes that a volume is attached to.
    pub(crate) fn attached(&self, volume: &str) -> Result<Vec<String>, Status> {
        let directory = self.root.join("attached").join(plain(volume)?);
        if directory.is_dir() {
            names(&directory)
        } else {
            Ok(Vec::new())
        }
    }

    pub(crate) fn attach(&self, volume: &str, node: &str) -> Result<(), Status> {
        let directory = self.root.join("attached").join(plain(volume)?);
        fs::create_dir_all(&directory).map_err(failed)?;
        fs::write(directory.join(plain(node)?), "").map_err(failed)
    }

    pub(crate) fn detach(&self, volume: &str, node: &str) -> Result<(), Status> {
        let directory = self.root.join("attached").join(plain(volume)?);
        ignore_missing(fs::remove_file(directory.join(plain(node)?)))
    }
}

/// Accepts names without separators, so that no request leaves the root.
fn plain(name: &str) -> Result<&str, Status> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(Status::invalid_argument(format!("{name:?} is no id")));
    }
    Ok(name)
}

fn names(directory: &Path) -> Result<Vec<String>, Status> {
    let entries = fs::read_dir(directory).map_err(failed)?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(
            entry
                .map_err(failed)?
                .file_name()
                .to_string_lossy()
                .into_owned(),
        );
    }
    names.sort_unstable();
    Ok(names)
}

pub(crate) fn failed(error: io::Error) -> Status {
    Status::internal(error.to_string())
}

pub(crate) fn ignore_missing(result: io::Result<()>) -> Result<(), Status> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(failed),
    }
}

/// Copies the files of a directory; ones below its folders are left out.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn is_mounted(path: &Path) -> Result<bool, Status> {
    let text = fs::read_to_string("/proc/self/mountinfo").map_err(failed)?;
    let path = path.display().to_string();
    let mut points = text.lines().filter_map(|line| line.split(' ').nth(4));
    Ok(points.any(|point| point == path))
}

/// Mounts a directory on another one, unless something is mounted there.
pub(crate) fn bind(source: &Path, target: &Path, read_only: bool) -> Result<(), Status> {
    if is_mounted(target)? {
        return Ok(());
    }
    fs::create_dir_all(target).map_err(failed)?;
    let none = None::<&str>;
    let bound = mount(Some(source), target, none, MsFlags::MS_BIND, none);
    bound.map_err(|error| failed(error.into()))?;
    if read_only {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        let remounted = mount(none, target, none, flags, none);
        remounted.map_err(|error| failed(error.into()))?;
    }
    Ok(())
}

/// Unmounts whatever is on a directory.
pub(crate) fn unbind(target: &Path) -> Result<(), Status> {
    while is_mounted(target)? {
        match umount2(target, MntFlags::empty()) {
            Ok(()) | Err(Errno::EINVAL | Errno::ENOENT) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
    Ok(())
}
