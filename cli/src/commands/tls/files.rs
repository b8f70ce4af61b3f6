//! Files of certificates and keys.

use std::fs::Permissions;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pki::Issued;

use crate::args::tls::Output;
use crate::error::Error;
use crate::output::shell;

/// The files of one certificate and its key.
pub(super) struct Pair {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    force: bool,
}

impl Pair {
    pub(super) fn new(output: &Output, certificate: &str, key: &str) -> Self {
        let folder = &output.out_dir;
        let at = |name: &str| match folder.as_os_str().to_str() {
            Some("." | "") => PathBuf::from(name),
            _ => folder.join(name),
        };
        Self {
            certificate: at(certificate),
            key: at(key),
            force: output.force,
        }
    }

    /// # Errors
    /// One of the files exists, and shall not be replaced.
    pub(super) fn check(&self) -> Result<(), Error> {
        let mut paths = [&self.certificate, &self.key].into_iter();
        match paths.find(|path| !self.force && path.symlink_metadata().is_ok()) {
            Some(path) => Err(exists(path)),
            None => Ok(()),
        }
    }

    /// Writes both files, the key first: a certificate without its key is of no use.
    ///
    /// # Errors
    /// A file exists, or cannot be written.
    pub(super) fn write(&self, issued: &Issued) -> Result<(), Error> {
        self.write_file(&self.key, &issued.key_pem, 0o600)?;
        self.write_file(&self.certificate, &issued.certificate_pem, 0o644)
    }

    /// Writes a file as a whole, or not at all.
    fn write_file(&self, path: &Path, text: &str, mode: u32) -> Result<(), Error> {
        let write = || {
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            let mut file = tempfile::Builder::new()
                .prefix(".kafila-tls-")
                .permissions(Permissions::from_mode(mode))
                .tempfile_in(folder.unwrap_or(Path::new(".")))?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            let moved = if self.force {
                file.persist(path)
            } else {
                file.persist_noclobber(path)
            };
            moved.map_err(|error| error.error).map(drop)
        };
        write().map_err(|error: io::Error| match error.kind() {
            ErrorKind::AlreadyExists => exists(path),
            ErrorKind::NotFound => Error::text(format!(
                "Error writing {}: there is no such directory. Create it, or choose another one with \
                 -out-dir.",
                quoted(path)
            )),
            _ => Error::text(format!("Error writing {}: {error}.", quoted(path))),
        })
    }
}

fn exists(path: &Path) -> Error {
    Error::text(format!(
        "Error: {} already exists. Choose another directory with -out-dir, or replace it with -force.",
        quoted(path)
    ))
}

/// Reads a text file; `flag` names it, and `missing` is the advice if there is none.
pub(super) fn read(path: &Path, flag: &str, missing: &str) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| {
        let what = if flag.is_empty() {
            quoted(path)
        } else {
            format!("{flag}={}", quoted(path))
        };
        let advice = match error.kind() {
            ErrorKind::NotFound if !missing.is_empty() => format!(" {missing}"),
            _ => String::new(),
        };
        Error::text(format!("Error reading {what}: {error}.{advice}"))
    })
}

/// Returns a path as a shell takes it.
pub(super) fn quoted(path: &Path) -> String {
    shell::quoted(&path.display().to_string())
}
