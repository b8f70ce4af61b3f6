//! The key-encryption key of `kafila dev`: made once in its data directory.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use service_kit::IdSource;

/// Name of the file in the data directory.
const FILE: &str = "keyring_key";

/// Returns the path of the key; makes it unless an earlier run has.
///
/// # Errors
/// The file cannot be written.
pub(super) fn ensure(directory: &Path) -> std::io::Result<PathBuf> {
    let path = directory.join(FILE);
    let mut options = std::fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(&path) {
        Ok(mut file) => {
            let ids = IdSource::from_os();
            // 32 bytes as hexadecimal digits.
            writeln!(file, "{:032x}{:032x}", ids.next_u128(), ids.next_u128())?;
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_only_its_owner_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = ensure(directory.path()).unwrap();
        let made = std::fs::read_to_string(&path).unwrap();
        assert_eq!(made.trim().len(), 64);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        ensure(directory.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), made);
    }
}
