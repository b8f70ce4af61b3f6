//! Kinds of archives, by the suffix of a name or the option `archive`.

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

/// The kind of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archive {
    Tar(Compression),
    Zip,
    /// One compressed file.
    Single(Compression),
}

/// Names of the kinds, which are the suffixes of files as well. Longer suffixes come first.
const KINDS: [(&str, Archive); 15] = [
    ("tar.bz2", Archive::Tar(Compression::Bzip2)),
    ("tar.zst", Archive::Tar(Compression::Zstd)),
    ("tar.gz", Archive::Tar(Compression::Gzip)),
    ("tar.xz", Archive::Tar(Compression::Xz)),
    ("tbz2", Archive::Tar(Compression::Bzip2)),
    ("tzst", Archive::Tar(Compression::Zstd)),
    ("tgz", Archive::Tar(Compression::Gzip)),
    ("txz", Archive::Tar(Compression::Xz)),
    ("tar", Archive::Tar(Compression::None)),
    ("zip", Archive::Zip),
    ("bz2", Archive::Single(Compression::Bzip2)),
    ("zst", Archive::Single(Compression::Zstd)),
    ("gz", Archive::Single(Compression::Gzip)),
    ("xz", Archive::Single(Compression::Xz)),
    ("tbz", Archive::Tar(Compression::Bzip2)),
];

impl Archive {
    /// Returns the kind of a file by its name; `None`: not an archive.
    pub fn of_name(name: &str) -> Option<Self> {
        let kind = KINDS.iter().find(|(suffix, _)| {
            let rest = name.strip_suffix(suffix);
            rest.and_then(|rest| rest.strip_suffix('.')).is_some()
        });
        kind.map(|(_, archive)| *archive)
    }

    /// Returns the kind that an option names, as in `tar.gz`.
    pub fn named(option: &str) -> Option<Self> {
        let kind = KINDS.iter().find(|(name, _)| *name == option);
        kind.map(|(_, archive)| *archive)
    }

    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        let kind = KINDS.iter().find(|(_, archive)| *archive == self);
        kind.map_or("", |(name, _)| name)
    }

    /// Lists the names for messages.
    pub fn names() -> String {
        let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// Returns `name` without the suffix of its compression: the file in a [`Archive::Single`].
    pub fn strip(name: &str) -> &str {
        let stripped = KINDS.iter().find_map(|(suffix, _)| {
            let rest = name.strip_suffix(suffix)?;
            rest.strip_suffix('.')
        });
        stripped.filter(|rest| !rest.is_empty()).unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_decides_about_the_kind() {
        for (name, want) in [
            ("a.tar", Some(Archive::Tar(Compression::None))),
            ("a.tar.gz", Some(Archive::Tar(Compression::Gzip))),
            ("a-1.2.tgz", Some(Archive::Tar(Compression::Gzip))),
            ("a.tar.bz2", Some(Archive::Tar(Compression::Bzip2))),
            ("a.tbz2", Some(Archive::Tar(Compression::Bzip2))),
            ("a.tar.xz", Some(Archive::Tar(Compression::Xz))),
            ("a.txz", Some(Archive::Tar(Compression::Xz))),
            ("a.tar.zst", Some(Archive::Tar(Compression::Zstd))),
            ("a.zip", Some(Archive::Zip)),
            ("dump.sql.gz", Some(Archive::Single(Compression::Gzip))),
            ("dump.sql.zst", Some(Archive::Single(Compression::Zstd))),
            ("server.jar", None),
            ("zip", None),
            ("gzip", None),
            ("", None),
        ] {
            assert_eq!(Archive::of_name(name), want, "{name}");
        }
        assert_eq!(Archive::strip("dump.sql.gz"), "dump.sql");
        assert_eq!(Archive::strip(".gz"), ".gz");
    }

    #[test]
    fn each_kind_is_found_by_its_name() {
        for (name, archive) in KINDS {
            assert_eq!(Archive::named(name), Some(archive));
            assert_eq!(Archive::named(archive.name()), Some(archive));
        }
        assert_eq!(Archive::named("rar"), None);
    }
}
