//! Keys of cached files.
//!
//! A file with a checksum that is safe against collisions is known by the checksum alone, whatever its
//! URL. Other files are known by their URL. Headers and credentials are part of every key: a job without
//! them does not get a file that another job needed them for.

use artifact::{Checksum, Digest, Getter, Source};

use crate::digests::sha256_of;
use crate::request::ArtifactRequest;

/// The name of a cached file: 64 hexadecimal digits.
pub(crate) fn of(wanted: &ArtifactRequest) -> String {
    let content = match &wanted.source.checksum {
        Some(Checksum::Digest(digest)) if digest.algorithm.is_collision_resistant() => {
            digest.to_string()
        }
        Some(Checksum::Digest(digest)) => format!("{digest} {}", location(&wanted.source)),
        Some(Checksum::List(url)) => format!("list {url} {}", location(&wanted.source)),
        None => location(&wanted.source),
    };
    // With the length of each part, no two keys are one text.
    let mut text = format!("{}:{content}", content.len());
    for (name, value) in credentials(wanted) {
        text.push_str(&format!(";{}:{name}{}:{value}", name.len(), value.len()));
    }
    sha256_of(&text)
}

/// Returns the checksum that decides alone whether a cached file is the wanted one.
pub(crate) fn digest(source: &Source) -> Option<&Digest> {
    match &source.checksum {
        Some(Checksum::Digest(digest)) => Some(digest),
        _ => None,
    }
}

fn location(source: &Source) -> String {
    match &source.getter {
        Getter::Http(url) => {
            let mut url = url.clone();
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.into()
        }
        Getter::S3(object) => format!(
            "s3 {} {} {} {}",
            object.endpoint,
            object.bucket,
            object.key,
            object.version.as_deref().unwrap_or_default()
        ),
        Getter::Git(git) => format!("git {}", git.url),
        Getter::File(path) => format!("file {}", path.display()),
    }
}

fn credentials(wanted: &ArtifactRequest) -> Vec<(String, String)> {
    let mut found: Vec<_> = wanted
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .collect();
    match &wanted.source.getter {
        Getter::Http(url) if !url.username().is_empty() || url.password().is_some() => {
            let password = url.password().unwrap_or_default().to_owned();
            found.push((url.username().to_owned(), password));
        }
        Getter::S3(object) => {
            if let Some(keys) = &object.keys {
                found.push((keys.access_key_id.clone(), keys.secret_access_key.clone()));
            }
        }
        _ => {}
    }
    if wanted.insecure {
        // Content of an unverified server is not mixed with content of a verified one.
        found.push(("insecure".to_owned(), String::new()));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn key(source: &str, headers: &[(&str, &str)]) -> String {
        let headers = headers.iter();
        of(&ArtifactRequest {
            source: Source::parse(source, &BTreeMap::new()).unwrap(),
            headers: headers
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            insecure: false,
        })
    }

    #[test]
    fn a_safe_checksum_is_the_key_and_a_weak_one_is_not() {
        let sha256 = "a".repeat(64);
        let one = key(&format!("https://a.test/x?checksum=sha256:{sha256}"), &[]);
        let other = key(&format!("https://b.test/y?checksum=sha256:{sha256}"), &[]);
        assert_eq!(one, other);
        let md5 = "a".repeat(32);
        let one = key(&format!("https://a.test/x?checksum=md5:{md5}"), &[]);
        let other = key(&format!("https://b.test/x?checksum=md5:{md5}"), &[]);
        assert_ne!(one, other);
    }

    #[test]
    fn credentials_are_part_of_the_key() {
        let url = "https://a.test/x";
        let plain = key(url, &[]);
        assert_eq!(plain, key(url, &[]));
        assert_ne!(plain, key(url, &[("Authorization", "a")]));
        assert_ne!(key(url, &[("X", "a")]), key(url, &[("X", "b")]));
        assert_ne!(key(url, &[("ab", "c")]), key(url, &[("a", "bc")]));
        assert_ne!(plain, key("https://u:p@a.test/x", &[]));
        assert_ne!(plain, key("https://a.test/x?token=1", &[]));
    }
}
