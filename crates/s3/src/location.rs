//! A place in a bucket, written `s3://bucket/key`.

use std::fmt;

/// The scheme of a location.
const SCHEME: &str = "s3://";

/// A bucket and a key or prefix in it, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub bucket: String,
    /// Without a leading `/`.
    pub key: String,
}

impl Location {
    /// Returns whether `text` is meant as a location rather than as a file.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Reads `s3://bucket/key`.
    ///
    /// # Errors
    /// The text names the problem: the scheme, the bucket, or a key that no URL can have.
    pub fn read(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Err("want s3://BUCKET or s3://BUCKET/PREFIX".to_owned());
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err("the bucket is missing: want s3://BUCKET/PREFIX".to_owned());
        }
        let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if !bucket.chars().all(is_usual) {
            return Err(format!(
                "bucket {bucket:?} has a character that is not a letter, digit, '-', '.' or '_'"
            ));
        }
        // Clients and servers disagree on such keys: URLs resolve them as paths.
        let segments: Vec<&str> = key.split('/').collect();
        let inner = segments.len().saturating_sub(1);
        let is_resolved = |segment: &&str| matches!(*segment, "." | "..");
        if segments.iter().any(is_resolved) || segments[..inner].contains(&"") {
            return Err(format!(
                "key {key:?} has an empty part, '.' or '..': want names separated by single slashes"
            ));
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Returns the key of `name` with this location as its directory.
    pub fn key_of(&self, name: &str) -> String {
        match self.key.trim_end_matches('/') {
            "" => name.to_owned(),
            prefix => format!("{prefix}/{name}"),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.bucket, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_has_a_bucket_and_a_key() {
        for (text, bucket, key, child) in [
            ("s3://b", "b", "", "x"),
            ("s3://b/", "b", "", "x"),
            ("s3://b.c/p", "b.c", "p", "p/x"),
            ("s3://b/p/q/", "b", "p/q/", "p/q/x"),
        ] {
            let location = Location::read(text).unwrap();
            assert_eq!((&*location.bucket, &*location.key), (bucket, key), "{text}");
            assert_eq!(location.key_of("x"), child, "{text}");
        }
    }

    #[test]
    fn errors_name_the_problem() {
        for (text, part) in [
            ("/backup", "want s3://BUCKET"),
            ("s3:///p", "bucket is missing"),
            ("s3://b@c/p", "not a letter"),
            ("s3://b/../c", "empty part"),
            ("s3://b//c", "empty part"),
        ] {
            let error = Location::read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
