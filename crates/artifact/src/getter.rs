//! Getters: the ways to download a source.

use std::fmt;
use std::path::PathBuf;

use url::Url;

/// The way to download a source, with everything that it needs.
#[derive(Clone, PartialEq, Eq)]
pub enum Getter {
    /// A file over http or https.
    Http(Url),
    /// A repository.
    Git(Git),
    /// An object of S3 or a compatible store.
    S3(S3Object),
    /// A file of the node.
    File(PathBuf),
}

/// A git repository.
#[derive(Clone, PartialEq, Eq)]
pub struct Git {
    /// URL with the scheme https, http, ssh, git or file.
    pub url: Url,
    /// Branch, tag or commit; `None`: the default branch.
    pub reference: Option<String>,
    /// Commits to download; `None`: all.
    pub depth: Option<u32>,
    /// A private key, base64 of its file.
    pub ssh_key: Option<String>,
}

/// An object in a bucket.
#[derive(Clone, PartialEq, Eq)]
pub struct S3Object {
    /// `https://host[:port]` without the bucket.
    pub endpoint: String,
    pub bucket: String,
    pub key: String,
    pub region: String,
    /// `None`: the object is public.
    pub keys: Option<S3Keys>,
    pub version: Option<String>,
}

/// Credentials of a source.
#[derive(Clone, PartialEq, Eq)]
pub struct S3Keys {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: Option<String>,
}

impl Getter {
    /// Returns the scheme that a node may disable: `http`, `https`, `git`, `s3` or `file`.
    pub fn scheme(&self) -> &str {
        match self {
            Self::Http(url) => url.scheme(),
            // A repository of the node itself is a file.
            Self::Git(git) if git.url.scheme() == "file" => "file",
            Self::Git(_) => "git",
            Self::S3(_) => "s3",
            Self::File(_) => "file",
        }
    }
}

/// Shows where the source is, without user names, passwords, queries and keys.
impl fmt::Display for Getter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(url) => f.write_str(&shown(url)),
            Self::Git(git) => write!(f, "git::{}", shown(&git.url)),
            Self::S3(object) => write!(
                f,
                "s3::{}/{}/{}",
                object.endpoint, object.bucket, object.key
            ),
            Self::File(path) => write!(f, "file://{}", path.display()),
        }
    }
}

/// As [`fmt::Display`]: keys are secrets.
impl fmt::Debug for Getter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns a URL without its user, password, query and fragment.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Fails for a URL without a host, which has no user.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}
