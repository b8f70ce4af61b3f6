//! The checksum at the end of a snapshot.

use std::io::{Read, Seek, SeekFrom};

use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};

use crate::SnapshotError;

/// Size of the SHA-256 that etcd appends to the database.
pub const CHECKSUM_BYTES: u64 = SHA256_BYTES as u64;
const SHA256_BYTES: usize = 32;
/// The database is a multiple of this, so a file without a checksum shows. Source: etcdutl.
const SECTOR_BYTES: u64 = 512;
/// Size of one read.
const BUFFER_BYTES: usize = 256 << 10;

/// The verified checksum of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Size of the database, without the checksum.
    pub database_bytes: u64,
    /// As lower-case hexadecimal digits.
    pub sha256: String,
}

/// Verifies the checksum at the end of `file`.
///
/// # Errors
/// The file cannot be read, has no checksum, or another one.
pub fn verify(file: &mut (impl Read + Seek)) -> Result<Checksum, SnapshotError> {
    let size = file.seek(SeekFrom::End(0))?;
    if size < CHECKSUM_BYTES || size % SECTOR_BYTES != CHECKSUM_BYTES {
        return Err(SnapshotError::NoChecksum);
    }
    file.rewind()?;
    let database_bytes = size - CHECKSUM_BYTES;
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut left = database_bytes;
    while left > 0 {
        let part = usize::try_from(left).map_or(BUFFER_BYTES, |left| left.min(BUFFER_BYTES));
        file.read_exact(&mut buffer[..part])?;
        digest.update(&buffer[..part]);
        left -= part as u64;
    }
    let mut stored = [0; SHA256_BYTES];
    file.read_exact(&mut stored)?;
    let computed = digest.finish();
    if computed.as_ref() != stored {
        return Err(SnapshotError::ChecksumMismatch);
    }
    Ok(Checksum {
        database_bytes,
        sha256: HEXLOWER.encode(&stored),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn file(database: &[u8]) -> Vec<u8> {
        let digest = ring::digest::digest(&SHA256, database);
        [database, digest.as_ref()].concat()
    }

    #[test]
    fn a_complete_file_has_the_checksum_of_its_database() {
        let whole = file(&vec![7; 1_024 * 512]);
        let checksum = verify(&mut Cursor::new(&whole)).unwrap();
        assert_eq!(checksum.database_bytes, 1_024 * 512);
        assert_eq!(checksum.sha256.len(), 64);
    }

    #[test]
    fn a_damaged_or_cut_file_is_found() {
        let whole = file(&[7; 2_048]);
        for end in [0, 10, 2_048, whole.len() - 1] {
            let cut = verify(&mut Cursor::new(&whole[..end]));
            assert!(matches!(cut, Err(SnapshotError::NoChecksum)), "{end}");
        }
        // Cut by whole sectors, so the size looks right.
        let cut = [&whole[..1_024], &whole[2_048..]].concat();
        let cut = verify(&mut Cursor::new(cut));
        assert!(matches!(cut, Err(SnapshotError::ChecksumMismatch)));
        let mut damaged = whole.clone();
        damaged[1_000] ^= 1;
        let damaged = verify(&mut Cursor::new(damaged));
        assert!(matches!(damaged, Err(SnapshotError::ChecksumMismatch)));
    }
}
