//! Image names: `[registry/]path[:tag][@digest]`.
//!
//! Source: the distribution reference grammar.

/// The registry of names without one.
const DEFAULT_REGISTRY: &str = "docker.io";
/// The registry in names of images that were made by podman on the node.
const NODE_REGISTRY: &str = "localhost";
/// The path of names without one in the default registry.
const DEFAULT_PATH: &str = "library";

/// An image's name, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// As in `docker.io`.
    pub(crate) registry: String,
    /// As in `library/redis`.
    pub(crate) path: String,
    /// As in `7`; empty: none.
    pub(crate) tag: String,
    /// As in `sha256:…`; empty: none.
    pub(crate) digest: String,
}

impl Image {
    /// # Errors
    /// The name is no image reference.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            Err(format!(
                "image {name:?} {why}: write [registry/]path[:tag], as in redis:7"
            ))
        };
        let name = plain(name);
        let (name, digest) = name.split_once('@').unwrap_or((name, ""));
        let start = name.rfind('/').map_or(0, |slash| slash + 1);
        let (path, tag) = match name[start..].find(':') {
            Some(colon) => (&name[..start + colon], &name[start + colon + 1..]),
            None => (name, ""),
        };
        let (registry, path) = match path.split_once('/') {
            Some((first, rest)) if is_registry(first) => (first, rest),
            _ => (DEFAULT_REGISTRY, path),
        };
        if path.is_empty() {
            return wrong("has no name");
        }
        if !path.split('/').all(is_component) {
            return wrong("has characters other than a-z, 0-9 and separators (. _ -)");
        }
        let has_tag = name.len() > start && name[start..].contains(':');
        if has_tag && !is_tag(tag) {
            return wrong("has an invalid tag");
        }
        if !digest.is_empty() && !is_digest(digest) {
            return wrong("has an invalid digest");
        }
        let path = if registry == DEFAULT_REGISTRY && !path.contains('/') {
            format!("{DEFAULT_PATH}/{path}")
        } else {
            path.to_owned()
        };
        Ok(Self {
            registry: registry.to_owned(),
            path,
            tag: tag.to_owned(),
            digest: digest.to_owned(),
        })
    }

    /// Returns the name with its registry and without a tag, for pulls.
    pub(crate) fn repository(&self) -> String {
        format!("{}/{}", self.registry, self.path)
    }

    /// Returns the tag or digest to pull.
    pub(crate) fn version(&self) -> &str {
        match (self.digest.as_str(), self.tag.as_str()) {
            ("", "") => "latest",
            ("", tag) => tag,
            (digest, _) => digest,
        }
    }

    /// Returns whether the image was made on the node: no registry has it.
    pub(crate) fn is_of_node(&self) -> bool {
        self.registry == NODE_REGISTRY
    }

    /// Returns whether the name means another image from time to time, so that each start pulls it.
    pub(crate) fn is_moving(&self) -> bool {
        self.version() == "latest"
    }
}

/// Returns the form of a name that all its forms share: with registry and path, and with its digest if it has
/// one, else its tag.
pub(crate) fn key(name: &str) -> String {
    match Image::parse(name) {
        Ok(image) if image.digest.is_empty() => {
            format!("{}:{}", image.repository(), image.version())
        }
        Ok(image) => format!("{}@{}", image.repository(), image.digest),
        Err(_) => name.to_owned(),
    }
}

/// Returns the name without a scheme, which the engine does not take.
pub(crate) fn plain(name: &str) -> &str {
    name.strip_prefix("https://").unwrap_or(name)
}

pub(crate) fn is_registry(first: &str) -> bool {
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '[' | ']');
    (first == "localhost" || first.contains(['.', ':'])) && first.chars().all(is_host)
}

fn is_component(component: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    component.starts_with(is_plain)
        && component.ends_with(is_plain)
        && component
            .chars()
            .all(|c| is_plain(c) || matches!(c, '.' | '_' | '-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= 128
        && tag.starts_with(is_word)
        && tag.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(kind, hex)| {
        !kind.is_empty() && hex.len() >= 32 && hex.chars().all(|c| c.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_with_registry_path_and_tag() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let pinned = format!("redis@{digest}");
        for (name, repository, version, is_moving) in [
            ("redis", "docker.io/library/redis", "latest", true),
            ("redis:7", "docker.io/library/redis", "7", false),
            ("redis:latest", "docker.io/library/redis", "latest", true),
            ("team/app:1.2-rc_1", "docker.io/team/app", "1.2-rc_1", false),
            ("localhost/app", "localhost/app", "latest", true),
            ("10.0.0.1:5000/a/b:v1", "10.0.0.1:5000/a/b", "v1", false),
            ("ghcr.io/x/y__z:1", "ghcr.io/x/y__z", "1", false),
            ("https://quay.io/x/y:1", "quay.io/x/y", "1", false),
            (&pinned, "docker.io/library/redis", &digest, false),
        ] {
            let image = Image::parse(name).unwrap();
            assert_eq!(image.repository(), repository, "{name}");
            assert_eq!(image.version(), version, "{name}");
            assert_eq!(image.is_moving(), is_moving, "{name}");
        }
    }

    #[test]
    fn forms_of_one_name_have_one_key() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let pinned = format!("docker.io/library/redis@{digest}");
        for (name, want) in [
            ("redis", "docker.io/library/redis:latest"),
            ("docker.io/redis:latest", "docker.io/library/redis:latest"),
            (
                "https://docker.io/library/redis",
                "docker.io/library/redis:latest",
            ),
            ("localhost/app:1", "localhost/app:1"),
            (&format!("redis@{digest}"), &pinned),
            (&format!("redis:7@{digest}"), &pinned),
            ("<none>:<none>", "<none>:<none>"),
        ] {
            assert_eq!(key(name), want, "{name}");
        }
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            "",
            "UPPER",
            "a b",
            "redis:",
            "redis:7:8",
            "<image>",
            "a//b",
            "redis@sha256:xyz",
            "-redis",
            "redis:.7",
        ] {
            let error = Image::parse(name).unwrap_err();
            assert!(error.contains("as in redis:7"), "{name}: {error}");
        }
    }
}
