//! Forms of sources: `getter::`, schemes, and the short forms without either.

use std::path::PathBuf;

use url::Url;

use super::query::Query;
use super::{Problem, url_of};
use crate::getter::{S3Keys, S3Object};

/// The getter of a source, by its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Http,
    Git,
    S3,
    File,
}

/// Hosts whose paths name repositories, as in `github.com/OWNER/NAME`.
const REPOSITORY_HOSTS: [&str; 3] = ["github.com", "gitlab.com", "bitbucket.org"];

impl Form {
    /// Returns the form of a source, and the URL without `getter::`.
    pub(super) fn of(source: &str) -> Result<(Self, String), Problem> {
        let forced = source.split_once("::").filter(|(name, _)| {
            !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric())
        });
        match forced {
            Some(("git", rest)) => Ok((Self::Git, git_url(rest))),
            Some(("s3", rest)) => Ok((Self::S3, rest.to_owned())),
            Some(("http" | "https", rest)) => Ok((Self::Http, rest.to_owned())),
            Some(("file", rest)) => Ok((Self::File, rest.to_owned())),
            Some((other, _)) => Err(Problem::Unsupported(format!("{other}::"))),
            None => Self::unforced(source),
        }
    }

    fn unforced(source: &str) -> Result<(Self, String), Problem> {
        if let Some((scheme, rest)) = source.split_once("://") {
            let is_name = |it: char| it.is_ascii_alphanumeric() || "+-.".contains(it);
            if !scheme.is_empty() && scheme.chars().all(is_name) {
                return match scheme.to_ascii_lowercase().as_str() {
                    "http" | "https" => Ok((Self::Http, source.to_owned())),
                    "git" | "ssh" => Ok((Self::Git, source.to_owned())),
                    "s3" => Ok((Self::S3, format!("https://{rest}"))),
                    "file" => Ok((Self::File, source.to_owned())),
                    other => Err(Problem::Unsupported(format!("{other}://"))),
                };
            }
        }
        if let Some(url) = ssh_short(source) {
            return Ok((Self::Git, url));
        }
        let host = source.split(['/', '?']).next().unwrap_or_default();
        if REPOSITORY_HOSTS.contains(&host) {
            return Ok((Self::Git, format!("https://{source}")));
        }
        if host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn") {
            return Ok((Self::S3, format!("https://{source}")));
        }
        if host.ends_with(".googleapis.com") {
            return Err(Problem::Unsupported("gcs".to_owned()));
        }
        if source.starts_with('/') {
            return Ok((Self::File, format!("file://{source}")));
        }
        Err(Problem::NoScheme)
    }

    /// Completes the short form of a repository: `github.com/OWNER/NAME/SUBDIR` names a directory in it.
    pub(super) fn complete(
        self,
        rest: &str,
        subdir: Option<String>,
    ) -> Result<(String, Option<String>), Problem> {
        let unchanged = Ok((rest.to_owned(), subdir.clone()));
        let Some(path) = rest.strip_prefix("https://").filter(|_| self == Self::Git) else {
            return unchanged;
        };
        let mut parts = path.splitn(4, '/');
        let host = parts.next().unwrap_or_default();
        // Groups of gitlab.com may be nested, so its paths are taken as they are.
        if !matches!(host, "github.com" | "bitbucket.org") {
            return unchanged;
        }
        let (Some(owner), Some(name)) = (parts.next(), parts.next()) else {
            let message = format!("want {host}/OWNER/NAME");
            return Err(Problem::Url(message));
        };
        if owner.is_empty() || name.is_empty() {
            return Err(Problem::Url(format!("want {host}/OWNER/NAME")));
        }
        let name = name.strip_suffix(".git").unwrap_or(name);
        let below = parts.next().map(|part| part.trim_matches('/').to_owned());
        let below = below.filter(|part| !part.is_empty());
        let subdir = match (below, subdir) {
            (Some(below), Some(subdir)) => Some(format!("{below}/{subdir}")),
            (below, subdir) => below.or(subdir),
        };
        Ok((format!("https://{host}/{owner}/{name}.git"), subdir))
    }
}

/// Returns the URL of what follows `git::`.
fn git_url(rest: &str) -> String {
    if rest.contains("://") {
        return rest.to_owned();
    }
    if let Some(url) = ssh_short(rest) {
        return url;
    }
    if rest.starts_with('/') {
        return format!("file://{rest}");
    }
    format!("https://{rest}")
}

/// Reads `git@github.com:OWNER/NAME.git`, the short form of ssh.
fn ssh_short(source: &str) -> Option<String> {
    let (user, rest) = source.split_once('@')?;
    let (host, path) = rest.split_once(':')?;
    let is_plain = |text: &str| {
        let is_character = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
        !text.is_empty() && text.chars().all(is_character)
    };
    let is_port = path.split('/').next()?.parse::<u16>().is_ok();
    if !is_plain(user) || !is_plain(host) || is_port {
        return None;
    }
    Some(format!("ssh://{user}@{host}/{}", path.trim_start_matches('/')))
}

/// Returns the path of a file of the node.
pub(super) fn file(rest: &str) -> Result<PathBuf, Problem> {
    let path = rest.strip_prefix("file://").unwrap_or(rest);
    if !path.starts_with('/') {
        let message = "want file:///PATH with an absolute path".to_owned();
        return Err(Problem::Url(message));
    }
    Ok(percent_encoding::percent_decode_str(path)
        .decode_utf8_lossy()
        .into_owned()
        .into())
}

/// Reads the URL of an object: bucket and region are in the host name or in the path.
pub(super) fn object(rest: &str, query: &mut Query) -> Result<S3Object, Problem> {
    let rest = match rest.split_once("://") {
        Some(("s3", rest)) => format!("https://{rest}"),
        Some(_) => rest.to_owned(),
        None => format!("https://{rest}"),
    };
    let region = query.take("region").filter(|it| !it.is_empty());
    let id = query.take("aws_access_key_id").filter(|it| !it.is_empty());
    let secret = query.take("aws_access_key_secret");
    let session_token = query.take("aws_access_token").filter(|it| !it.is_empty());
    let version = query.take("version").filter(|it| !it.is_empty());
    if query.take("aws_profile").is_some() {
        let message = "is not supported: give aws_access_key_id and aws_access_key_secret";
        return Err(Problem::Option("aws_profile", message.to_owned()));
    }
    let keys = match (id, secret.filter(|it| !it.is_empty())) {
        (None, None) => None,
        (Some(access_key_id), Some(secret_access_key)) => Some(S3Keys {
            access_key_id,
            secret_access_key,
            session_token,
        }),
        (Some(_), None) => {
            let message = "is missing beside aws_access_key_id".to_owned();
            return Err(Problem::Option("aws_access_key_secret", message));
        }
        (None, Some(_)) => {
            let message = "is missing beside aws_access_key_secret".to_owned();
            return Err(Problem::Option("aws_access_key_id", message));
        }
    };
    let url = url_of(&rest, None)?;
    let (endpoint, bucket, key, of_host) = address(&url)?;
    Ok(S3Object {
        endpoint,
        bucket,
        key,
        region: region.or(of_host).unwrap_or_else(|| "us-east-1".to_owned()),
        keys,
        version,
    })
}

/// Returns endpoint, bucket, key, and the region in the host name.
fn address(url: &Url) -> Result<(String, String, String, Option<String>), Problem> {
    let host = url.host_str().unwrap_or_default();
    let path = url.path().trim_start_matches('/');
    let path = percent_encoding::percent_decode_str(path).decode_utf8();
    let path = path.map_err(|_| Problem::Bucket)?;
    let of_amazon = host
        .strip_suffix(".amazonaws.com")
        .map(|name| (name, "amazonaws.com"))
        .or_else(|| {
            let name = host.strip_suffix(".amazonaws.com.cn")?;
            Some((name, "amazonaws.com.cn"))
        });
    let in_path = || {
        let (bucket, key) = path.split_once('/').ok_or(Problem::Bucket)?;
        Ok((bucket.to_owned(), key.to_owned()))
    };
    let (endpoint, (bucket, key), region) = match of_amazon {
        // Of a compatible store: the path begins with the bucket.
        None => (url.origin().ascii_serialization(), in_path()?, None),
        Some((name, domain)) => {
            let (bucket, service) = split_service(name).ok_or(Problem::Bucket)?;
            let region = service.strip_prefix("s3").unwrap_or_default();
            let region = region.trim_start_matches(['.', '-']);
            let region = Some(region.to_owned()).filter(|it| !it.is_empty());
            let endpoint = match &region {
                Some(region) => format!("https://s3.{region}.{domain}"),
                None => format!("https://s3.{domain}"),
            };
            let object = match bucket {
                Some(bucket) => (bucket.to_owned(), path.clone().into_owned()),
                None => in_path()?,
            };
            (endpoint, object, region)
        }
    };
    if bucket.is_empty() || key.is_empty() || key.ends_with('/') {
        return Err(Problem::Bucket);
    }
    Ok((endpoint, bucket, key, region))
}

/// Splits `BUCKET.s3.REGION` and `BUCKET.s3-REGION` into bucket and service; without a bucket the service
/// is all of it.
fn split_service(name: &str) -> Option<(Option<&str>, &str)> {
    let is_service = |text: &str| text == "s3" || text.starts_with("s3.") || text.starts_with("s3-");
    if is_service(name) {
        return Some((None, name));
    }
    let mut positions = name.match_indices('.').map(|(position, _)| position);
    let position = positions.find(|position| is_service(&name[position + 1..]))?;
    Some((Some(&name[..position]), &name[position + 1..]))
}
