//! Checksums of sources: `sha256:<hex>`, a plain digest, or `file:<URL>` of a list.

use std::fmt;

use data_encoding::HEXLOWER_PERMISSIVE;

/// The function of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::Md5, Self::Sha1, Self::Sha256, Self::Sha512];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// Returns the length of a digest in hexadecimal digits.
    fn digits(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }

    fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    /// Returns whether two contents with one digest cannot be made on purpose.
    pub fn is_collision_resistant(self) -> bool {
        matches!(self, Self::Sha256 | Self::Sha512)
    }
}

/// A digest: lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    pub algorithm: Algorithm,
    pub hex: String,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.as_str(), self.hex)
    }
}

/// The checksum of a source.
#[derive(Clone, PartialEq, Eq)]
pub enum Checksum {
    Digest(Digest),
    /// URL (http or https) of a list with the digests of files.
    List(String),
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digest(digest) => write!(f, "{digest}"),
            // Its query may have a token.
            Self::List(_) => f.write_str("file:…"),
        }
    }
}

impl Checksum {
    /// Reads the option `checksum`.
    ///
    /// # Errors
    /// A message about the option.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(url) = text.strip_prefix("file:") {
            if !(url.starts_with("https://") || url.starts_with("http://")) {
                return Err("after `file:` want the URL of a list, https://… or http://…".into());
            }
            return Ok(Self::List(url.to_owned()));
        }
        if let Some((name, hex)) = text.split_once(':') {
            let Some(algorithm) = Algorithm::named(name) else {
                return Err(format!(
                    "{name:?} is not the name of a checksum: want md5, sha1, sha256, sha512 or file"
                ));
            };
            return digest(algorithm, hex).map(Self::Digest);
        }
        by_length(text).map(Self::Digest).ok_or_else(|| {
            "want TYPE:DIGITS, as in sha256:… with 64 hexadecimal digits, or file:URL".to_owned()
        })
    }
}

fn digest(algorithm: Algorithm, hex: &str) -> Result<Digest, String> {
    let hex = hex.trim();
    if hex.len() != algorithm.digits() || HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).is_err() {
        return Err(format!(
            "{} has {} hexadecimal digits, not {hex:?}",
            algorithm.as_str(),
            algorithm.digits()
        ));
    }
    Ok(Digest {
        algorithm,
        hex: hex.to_ascii_lowercase(),
    })
}

fn by_length(hex: &str) -> Option<Digest> {
    let algorithm = Algorithm::ALL
        .into_iter()
        .find(|it| it.digits() == hex.len())?;
    digest(algorithm, hex).ok()
}

impl Digest {
    /// Finds the digest of a file in a list: lines `DIGITS  NAME` of the command `sha256sum`, lines
    /// `SHA256 (NAME) = DIGITS`, or a single line of digits alone.
    ///
    /// # Errors
    /// A message: the list does not name the file.
    pub fn in_list(list: &str, name: &str) -> Result<Self, String> {
        let lines = list.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut alone = None;
        let mut count = 0_usize;
        for line in lines.filter(|line| !line.starts_with('#')) {
            count += 1;
            let Some((named, digest)) = read_line(line) else {
                continue;
            };
            match named {
                Some(named) if is_name(named, name) => return Ok(digest),
                Some(_) => {}
                None => alone = Some(digest),
            }
        }
        match alone {
            Some(digest) if count == 1 => Ok(digest),
            _ => Err(format!("the list of checksums does not name {name:?}")),
        }
    }
}

/// Returns the name in a line, if it has one, and the digest.
fn read_line(line: &str) -> Option<(Option<&str>, Digest)> {
    if let Some((head, hex)) = line.rsplit_once(") = ") {
        let (kind, name) = head.split_once(" (")?;
        let digest = digest(Algorithm::named(kind)?, hex).ok()?;
        return Some((Some(name), digest));
    }
    match line.split_once(char::is_whitespace) {
        None => Some((None, by_length(line)?)),
        Some((hex, rest)) => {
            let name = rest.trim_start();
            let name = name.strip_prefix('*').unwrap_or(name);
            Some((Some(name), by_length(hex)?))
        }
    }
}

/// A list may have the file's path, as in `./dist/app.zip`.
fn is_name(named: &str, name: &str) -> bool {
    named.rsplit('/').next() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA256: &str = "e30b29b72ad5ec1f6dfc8dee0c2fcd162f47127f2251b99e47b9ae8af1d7b917";
    const MD5: &str = "c4aa853ad2215426eb7d70a21922e794";

    #[test]
    fn checksums_have_a_type_or_a_length() {
        let parse = |text: &str| Checksum::parse(text).map(|checksum| format!("{checksum:?}"));
        assert_eq!(parse(&format!("sha256:{SHA256}")), Ok(format!("sha256:{SHA256}")));
        assert_eq!(
            parse(&format!("SHA256:{}", SHA256.to_uppercase())),
            Ok(format!("sha256:{SHA256}"))
        );
        assert_eq!(parse(MD5), Ok(format!("md5:{MD5}")));
        let list = "https://example.org/SHA256SUMS?token=hidden";
        assert_eq!(
            Checksum::parse(&format!("file:{list}")),
            Ok(Checksum::List(list.to_owned()))
        );
        assert!(!parse(&format!("file:{list}")).unwrap().contains("hidden"));
        for (bad, want) in [
            ("sha256:abc", "64 hexadecimal digits"),
            (&format!("sha256:{MD5}"), "64 hexadecimal digits"),
            (&format!("md5:{}", "g".repeat(32)), "32 hexadecimal digits"),
            ("crc32:1234", "md5, sha1, sha256, sha512 or file"),
            ("", "want TYPE:DIGITS"),
            ("file:/etc/passwd", "https://"),
        ] {
            let error = Checksum::parse(bad).unwrap_err();
            assert!(error.contains(want), "{bad}: {error}");
        }
    }

    #[test]
    fn lists_of_both_forms_name_the_file() {
        let gnu = format!("{MD5}  other.zip\n# comment\n{SHA256} *dist/app.zip\n");
        let bsd = format!("MD5 (other.zip) = {MD5}\nSHA256 (app.zip) = {SHA256}\n");
        for list in [gnu, bsd, format!("{SHA256}\n")] {
            let digest = Digest::in_list(&list, "app.zip").unwrap();
            assert_eq!(digest.to_string(), format!("sha256:{SHA256}"), "{list}");
        }
        let others = format!("{MD5}  other.zip\n{SHA256}  my-app.zip\n");
        for list in ["", "<html>", &others, &format!("{MD5}\n{SHA256}\n")] {
            let error = Digest::in_list(list, "app.zip").unwrap_err();
            assert!(error.contains("\"app.zip\""), "{error}");
        }
    }
}
