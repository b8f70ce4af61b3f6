//! Problems of sources.

/// Bytes of a source or an option, at most: a private key of 4096 bits has some 4,500 in base64.
pub(super) const TEXT_BYTES_MAX: usize = 16 << 10;

/// A source that cannot be read. No message has the text of a query or a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("is empty: want a URL, as in https://example.org/app.zip")]
    Empty,
    #[error("has more than {TEXT_BYTES_MAX} bytes")]
    Long,
    #[error(
        "has no scheme that is known here: want https://…, http://…, git::…, s3::… or github.com/OWNER/NAME"
    )]
    NoScheme,
    #[error("uses {0:?}, which is not supported: use https, http, git or s3")]
    Unsupported(String),
    #[error("is not a URL: {0}")]
    Url(String),
    #[error("names no bucket and key: want s3::https://s3.REGION.amazonaws.com/BUCKET/KEY")]
    Bucket,
    #[error("has a part after `//` that leaves the archive or repository: want a path below it")]
    Subdir,
    #[error("has a `//` part, which needs an archive or a git repository")]
    SubdirOfFile,
    #[error("option {0:?} {1}")]
    Option(&'static str, String),
}
