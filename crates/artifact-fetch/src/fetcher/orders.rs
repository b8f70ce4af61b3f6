//! Orders of downloads for the helper.

use artifact::{Checksum, Getter, Git};

use super::stall_ms;
use crate::config::ArtifactConfig;
use crate::request::ArtifactRequest;
use crate::wire::{self, Validators, Work};

/// Returns the order for a file. A repository has [`repository`].
pub(super) fn work(
    wanted: &ArtifactRequest,
    cached: Option<&Validators>,
    config: &ArtifactConfig,
) -> Work {
    let source = &wanted.source;
    let http = |url: String| wire::Http {
        url,
        headers: wanted.headers.clone(),
        insecure: wanted.insecure,
        list: match &source.checksum {
            Some(Checksum::List(url)) => Some(url.clone()),
            _ => None,
        },
        cached: cached.cloned(),
        has_checksum: source.checksum.is_some(),
        bytes_max: config.download_bytes_max,
        stall_ms: stall_ms(config.stall_timeout),
    };
    match &source.getter {
        Getter::Http(url) => Work::Http(http(url.to_string())),
        Getter::S3(object) => Work::S3(wire::S3 {
            endpoint: object.endpoint.clone(),
            bucket: object.bucket.clone(),
            key: object.key.clone(),
            region: object.region.clone(),
            version: object.version.clone(),
            keys: object.keys.as_ref().map(|keys| {
                (
                    keys.access_key_id.clone(),
                    keys.secret_access_key.clone(),
                    keys.session_token.clone(),
                )
            }),
            http: http(String::new()),
        }),
        Getter::File(path) => Work::File(wire::LocalFile {
            path: path.clone(),
            bytes_max: config.download_bytes_max,
        }),
        Getter::Git(git) => repository(git, wanted.insecure, config),
    }
}

pub(super) fn repository(git: &Git, insecure: bool, config: &ArtifactConfig) -> Work {
    Work::Git(wire::Git {
        url: git.url.to_string(),
        reference: git.reference.clone(),
        depth: git.depth,
        ssh_key: git.ssh_key.clone(),
        allow_file: config.schemes.iter().any(|it| it == "file"),
        insecure,
        bytes_max: config.download_bytes_max,
    })
}
