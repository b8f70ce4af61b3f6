//! Names of images without a registry, completed as podman does: by the aliases and the search list of the
//! node's `registries.conf`.
//!
//! Source: the public manual containers-registries.conf(5). Without a search list the registry is Docker
//! Hub, as for the API of Docker's engine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::image::is_registry;

/// The node's files; later ones take precedence.
const FILE: &str = "/etc/containers/registries.conf";
const DIRECTORY: &str = "/etc/containers/registries.conf.d";
/// The registry of names of images that were made on the node.
const NODE: &str = "localhost";
const HUB: &str = "docker.io";

/// Full names of an image, in the order in which they are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// Names by which the node may have it.
    pub(crate) local: Vec<String>,
    /// Names by which a registry may have it.
    pub(crate) remote: Vec<String>,
}

impl Names {
    /// Returns the name of an image that has no other.
    pub(crate) fn one(name: &str) -> Self {
        Self {
            local: vec![name.to_owned()],
            remote: vec![name.to_owned()],
        }
    }
}

/// The node's settings of registries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registries {
    /// Name without a registry and tag → full name.
    aliases: BTreeMap<String, String>,
    search: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    aliases: BTreeMap<String, String>,
    #[serde(rename = "unqualified-search-registries")]
    search: Option<Vec<String>>,
}

impl Registries {
    /// Reads the node's files. Unreadable ones count as empty: podman reports them itself.
    pub(crate) fn read() -> Self {
        let entries = fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
        let mut further: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        further.retain(|path| path.extension().is_some_and(|it| it == "conf"));
        further.sort();
        let files = std::iter::once(Path::new(FILE).to_owned()).chain(further);
        let texts = files.filter_map(|path| fs::read_to_string(path).ok());
        Self::parse(texts)
    }

    fn parse(texts: impl Iterator<Item = String>) -> Self {
        let mut all = Self::default();
        for file in texts.filter_map(|text| toml::from_str::<File>(&text).ok()) {
            all.aliases.extend(file.aliases);
            if let Some(search) = file.search {
                all.search = search;
            }
        }
        all
    }
}

/// Returns the full names of an image.
pub(crate) fn names(name: &str, registries: &Registries) -> Names {
    if name
        .split_once('/')
        .is_some_and(|(first, _)| is_registry(first))
    {
        let is_of_node = name.split('/').next() == Some(NODE);
        return Names {
            local: vec![name.to_owned()],
            remote: (!is_of_node).then(|| name.to_owned()).into_iter().collect(),
        };
    }
    let end = name.find(['@', ':']).unwrap_or(name.len());
    let (path, version) = name.split_at(end);
    let remote: Vec<String> = match registries.aliases.get(path) {
        Some(full) => vec![format!("{full}{version}")],
        None if registries.search.is_empty() => vec![of_hub(name)],
        None => {
            let registries = registries.search.iter();
            let full = |registry: &String| match registry.as_str() {
                HUB => of_hub(name),
                registry => format!("{registry}/{name}"),
            };
            registries.map(full).collect()
        }
    };
    let mut local = vec![format!("{NODE}/{name}")];
    local.extend(remote.iter().cloned());
    // Made through the API of Docker's engine.
    local.extend(Some(of_hub(name)).filter(|hub| !remote.contains(hub)));
    Names { local, remote }
}

fn of_hub(name: &str) -> String {
    if name.contains('/') {
        format!("{HUB}/{name}")
    } else {
        format!("{HUB}/library/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registries(texts: &[&str]) -> Registries {
        Registries::parse(texts.iter().map(|text| (*text).to_owned()))
    }

    #[test]
    fn names_are_completed_by_aliases_then_by_the_search_list() {
        let aliases = "[aliases]\nfedora = \"registry.fedoraproject.org/fedora\"\n";
        let search = "unqualified-search-registries = [\"quay.io\", \"docker.io\"]\n";
        let table: [(&str, &[&str], &[&str]); 8] = [
            ("redis:7", &[], &["docker.io/library/redis:7"]),
            ("team/app", &[], &["docker.io/team/app"]),
            (
                "redis:7",
                &[search],
                &["quay.io/redis:7", "docker.io/library/redis:7"],
            ),
            (
                "fedora:38",
                &[aliases, search],
                &["registry.fedoraproject.org/fedora:38"],
            ),
            (
                "fedora@sha256:ab",
                &[aliases],
                &["registry.fedoraproject.org/fedora@sha256:ab"],
            ),
            ("ghcr.io/x/y:1", &[aliases, search], &["ghcr.io/x/y:1"]),
            ("r.example:5000/y", &[search], &["r.example:5000/y"]),
            ("localhost/app", &[search], &[]),
        ];
        for (name, texts, want) in table {
            assert_eq!(
                names(name, &registries(texts)).remote,
                want,
                "{name} {texts:?}"
            );
        }
    }

    #[test]
    fn images_of_the_node_are_found_by_podmans_names_for_them() {
        let none = Registries::default();
        let local = |name: &str| names(name, &none).local;
        assert_eq!(
            local("app:1"),
            ["localhost/app:1", "docker.io/library/app:1"]
        );
        assert_eq!(local("localhost/app:1"), ["localhost/app:1"]);
        let search = registries(&["unqualified-search-registries = [\"quay.io\"]"]);
        assert_eq!(
            names("app", &search).local,
            ["localhost/app", "quay.io/app", "docker.io/library/app"]
        );
    }

    #[test]
    fn later_files_take_precedence_and_broken_ones_are_left_out() {
        let found = registries(&[
            "unqualified-search-registries = [\"a.example\"]\n[aliases]\nx = \"a.example/x\"\ny = \"a.example/y\"",
            "nonsense",
            "unqualified-search-registries = [\"b.example\"]\n[aliases]\nx = \"b.example/x\"",
            "[[registry]]\nlocation = \"c.example\"\ninsecure = true",
        ]);
        assert_eq!(found.search, ["b.example"]);
        assert_eq!(found.aliases["x"], "b.example/x");
        assert_eq!(found.aliases["y"], "a.example/y");
    }
}
