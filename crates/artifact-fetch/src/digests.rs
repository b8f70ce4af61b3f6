//! Digests of downloaded files.

use std::fs::File;
use std::io::{self, Read as _};

use artifact::{Algorithm, Digest};
use data_encoding::HEXLOWER;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

const BUFFER: usize = 1 << 16;

/// Computes the digest of a file from its start.
pub(crate) fn of_file(mut file: File, algorithm: Algorithm) -> io::Result<Digest> {
    let hex = match algorithm {
        Algorithm::Md5 => hash::<Md5>(&mut file),
        Algorithm::Sha1 => hash::<Sha1>(&mut file),
        Algorithm::Sha256 => hash::<Sha256>(&mut file),
        Algorithm::Sha512 => hash::<Sha512>(&mut file),
    }?;
    Ok(Digest { algorithm, hex })
}

/// Returns the SHA-256 of a text in hexadecimal digits.
pub fn sha256_of(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

fn hash<D: sha2::Digest>(file: &mut File) -> io::Result<String> {
    let mut hasher = D::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(HEXLOWER.encode(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    #[test]
    fn digests_are_those_of_the_commands() {
        for (algorithm, start) in [
            (Algorithm::Md5, "900150983cd24fb0"),
            (Algorithm::Sha1, "a9993e364706816a"),
            (Algorithm::Sha256, "ba7816bf8f01cfea"),
            (Algorithm::Sha512, "ddaf35a193617aba"),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"abc").unwrap();
            file.rewind().unwrap();
            let digest = of_file(file, algorithm).unwrap();
            assert!(digest.hex.starts_with(start), "{digest}");
        }
    }
}
