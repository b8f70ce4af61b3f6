//! Modes of networks that a node can set up, and the reason why it cannot.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::config::NetworkConfig;
use crate::conflist::ConfList;
use crate::netns;
use crate::nft;
use crate::plugins;
use crate::program;

/// Mode, as in `bridge`, `none` or `cni/lan` → why the node cannot set it up; `None`: it can.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    pub modes: BTreeMap<String, Option<String>>,
    /// Plugin → version.
    pub plugins: BTreeMap<String, String>,
    /// Problems of files with networks.
    pub problems: Vec<String>,
    pub hairpin: bool,
}

impl Offer {
    /// Returns the attributes of the node: `network.<mode>` → `true` or `false`, and the reason.
    ///
    /// The reason is a unique attribute, so that nodes with different ones share a class.
    pub fn attributes(&self) -> BTreeMap<String, String> {
        let mut attributes = BTreeMap::new();
        for (mode, problem) in &self.modes {
            attributes.insert(
                model::network_attribute(mode),
                problem.is_none().to_string(),
            );
            if let Some(problem) = problem {
                attributes.insert(format!("unique.network.{mode}.problem"), problem.clone());
            }
        }
        if !self.problems.is_empty() {
            let name = "unique.network.cni.problem".to_owned();
            attributes.insert(name, self.problems.join("; "));
        }
        for (plugin, version) in &self.plugins {
            attributes.insert(format!("plugins.cni.version.{plugin}"), version.clone());
        }
        // Source: Nomad's attribute.
        let name = "nomad.bridge.hairpin_mode".to_owned();
        attributes.insert(name, self.hairpin.to_string());
        attributes
    }
}

pub(crate) fn probe(config: &NetworkConfig) -> Offer {
    let no_namespace = netns::problem();
    let no_nft = nft::problem();
    let of_list = |list: &ConfList| {
        let missing = list
            .types()
            .find(|name| plugins::find(&config.cni_path, name).is_none());
        let missing = missing.map(|name| {
            format!(
                "the CNI plugin {name} is missing in {}: install the package containernetworking-plugins, \
                 or correct network.cni_path",
                config.cni_path.join(":")
            )
        });
        no_namespace.clone().or_else(|| no_nft.clone()).or(missing)
    };
    let mut modes = BTreeMap::from([
        ("none".to_owned(), no_namespace.clone()),
        ("bridge".to_owned(), of_list(&ConfList::bridge(config))),
    ]);
    let (lists, problems) = read_lists(&config.cni_config_dir);
    for list in lists {
        modes.insert(format!("cni/{}", list.name), of_list(&list));
    }
    Offer {
        modes,
        plugins: versions(&config.cni_path),
        problems,
        hairpin: config.bridge_hairpin_mode,
    }
}

/// Returns the networks of the directory's files, in the order of their names, and the problems of
/// those that cannot be read. Of two with one name, the first counts.
pub(crate) fn read_lists(directory: &Path) -> (Vec<ConfList>, Vec<String>) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    let is_list = |name: &str| matches!(name, "conf" | "conflist" | "json");
    paths.retain(|path| {
        path.extension()
            .and_then(|it| it.to_str())
            .is_some_and(is_list)
    });
    paths.sort();
    let (mut lists, mut problems) = (Vec::<ConfList>::new(), Vec::new());
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| error.to_string());
        match text.and_then(|text| ConfList::parse(&text)) {
            Ok(list) if lists.iter().any(|known| known.name == list.name) => {
                problems.push(format!(
                    "{}: the name {:?} is in use",
                    path.display(),
                    list.name
                ));
            }
            Ok(list) => lists.push(list),
            Err(problem) => problems.push(format!("{}: {problem}", path.display())),
        }
    }
    (lists, problems)
}

/// Returns the versions that the plugins print when they are run without a command.
fn versions(path: &[String]) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for plugin in ["bridge", "host-local", "loopback"] {
        let Some(program) = plugins::find(path, plugin) else {
            continue;
        };
        // "about" text on standard error. Source: the plugins' public behaviour.
        if let Ok(output) = program::run(&mut program::command(program), Vec::new()) {
            // The next line lists versions of the protocol.
            let first = output.stderr.lines().next().unwrap_or_default();
            let mut words = first.split_whitespace();
            let version = words.find_map(version).unwrap_or("unknown");
            versions.insert(plugin.to_owned(), version.to_owned());
        }
    }
    versions
}

/// Returns the version in a word such as `v1.1.1`; `None`: it has none.
fn version(word: &str) -> Option<&str> {
    let word = word.strip_prefix('v').unwrap_or(word);
    let is_version = word.split('.').count() >= 3
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word
            .split(['.', '-', '+', '~'])
            .take(3)
            .all(|part| part.parse::<u32>().is_ok());
    is_version.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_texts() {
        for (word, want) in [
            ("v1.1.1", Some("1.1.1")),
            ("1.3.0-dev", Some("1.3.0-dev")),
            ("plugin", None),
            ("0.1", None),
            ("0.1.0,", None),
        ] {
            assert_eq!(version(word), want, "{word}");
        }
    }

    #[test]
    fn broken_files_are_named_and_the_others_are_used() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write(
            "10-a.conflist",
            r#"{"name": "a", "plugins": [{"type": "ptp"}]}"#,
        );
        write("20-b.conf", "{");
        write("30-a.json", r#"{"name": "a", "type": "bridge"}"#);
        write("readme.txt", "x");
        let (lists, problems) = read_lists(directory.path());
        let names: Vec<_> = lists.iter().map(|list| list.name.as_str()).collect();
        assert_eq!(names, ["a"]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("20-b.conf"), "{problems:?}");
    }

    #[test]
    fn a_mode_that_cannot_be_set_up_has_a_reason() {
        let config = NetworkConfig {
            cni_path: vec!["/no/such/directory".to_owned()],
            ..NetworkConfig::default()
        };
        let attributes = probe(&config).attributes();
        assert_eq!(attributes["network.bridge"], "false");
        let reason = &attributes["unique.network.bridge.problem"];
        assert!(!reason.is_empty());
    }
}
