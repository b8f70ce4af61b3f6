//! Namespace files: what `namespace apply` reads, as HCL or as the API's JSON.

use std::collections::HashMap;
use std::path::Path;

use hcl_edit::expr::Expression;
use hcl_edit::structure::{Body, Structure};
use proto::v1;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::Error;
use crate::jobfile::{is_json, name_of, text_of};
use crate::poolfile::{MAX_DEPTH, Reader, depth, name};

/// What a file may say.
const KNOWN: &str = "name, description, meta, capabilities or node_pool_config";
/// What is not in this version, with what to do instead.
const REFUSED: [(&[&str], &str); 3] = [
    (
        &["quota"],
        "there are no quotas: remove it, a namespace takes what the cluster has",
    ),
    (
        &["vault", "consul"],
        "neither Vault nor Consul is part of this version: remove it",
    ),
    (
        &["enabled_network_modes", "disabled_network_modes"],
        "groups have no network modes in this version, all are on the host's network: remove it",
    ),
];

/// Reads the namespace that a file describes; `-` is standard input.
///
/// # Errors
/// It cannot be read, or describes no namespace.
pub(crate) fn read(path: &Path, json: bool) -> Result<v1::Namespace, Error> {
    let name = name_of(path);
    let text = text_of(path)
        .map_err(|error| Error::text(format!("Error reading namespace file {name}: {error}")))?;
    let parsed = if json || is_json(&text) {
        from_json(&text)
    } else {
        from_hcl(&text)
    };
    parsed.map_err(|problem| Error::text(format!("Error parsing namespace file {name}: {problem}")))
}

/// The object of the HTTP API. What servers set is taken and ignored, so that what `inspect` prints
/// can be applied.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Namespace {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    meta: Option<HashMap<String, String>>,
    #[serde(default)]
    capabilities: Option<Capabilities>,
    #[serde(default)]
    node_pool_configuration: Option<NodePools>,
    /// What other servers print with every namespace; only nothing can be had here.
    #[serde(default)]
    quota: String,
    #[serde(default, rename = "Hash")]
    _hash: IgnoredAny,
    #[serde(default, rename = "CreateIndex")]
    _create_index: IgnoredAny,
    #[serde(default, rename = "ModifyIndex")]
    _modify_index: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Capabilities {
    #[serde(default)]
    enabled_task_drivers: Option<Vec<String>>,
    #[serde(default)]
    disabled_task_drivers: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct NodePools {
    #[serde(default)]
    default: String,
    #[serde(default)]
    allowed: Option<Vec<String>>,
    #[serde(default)]
    denied: Option<Vec<String>>,
}

fn from_json(text: &str) -> Result<v1::Namespace, String> {
    let namespace: Namespace = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if !namespace.quota.is_empty() {
        return Err(format!("\"Quota\": {}", REFUSED[0].1));
    }
    let capabilities = namespace.capabilities;
    let rules = namespace.node_pool_configuration;
    Ok(v1::Namespace {
        name: namespace.name,
        description: namespace.description,
        meta: namespace.meta.unwrap_or_default(),
        capabilities: capabilities.map(|it| v1::NamespaceCapabilities {
            enabled_task_drivers: it.enabled_task_drivers.unwrap_or_default(),
            disabled_task_drivers: it.disabled_task_drivers.unwrap_or_default(),
        }),
        node_pool_configuration: rules.map(|it| v1::NamespaceNodePoolConfiguration {
            default: it.default,
            allowed: it.allowed.map(|patterns| v1::NodePoolPatterns { patterns }),
            denied: it.denied.unwrap_or_default(),
        }),
        ..v1::Namespace::default()
    })
}

fn from_hcl(text: &str) -> Result<v1::Namespace, String> {
    if depth(text) > MAX_DEPTH {
        return Err(format!("brackets stand more than {MAX_DEPTH} deep"));
    }
    let body = hcl_edit::parser::parse_body(text).map_err(|error| error.to_string())?;
    let reader = Reader { text };
    let mut namespace = v1::Namespace::default();
    for item in &body {
        match (item, name(item)) {
            (Structure::Attribute(it), "name") => namespace.name = reader.string(&it.value)?,
            (Structure::Attribute(it), "description") => {
                namespace.description = reader.string(&it.value)?;
            }
            (Structure::Attribute(it), "meta") => namespace.meta = reader.object(&it.value)?,
            (Structure::Block(it), "meta") => namespace.meta = reader.words(&it.body)?,
            (Structure::Block(it), "capabilities") => {
                namespace.capabilities = Some(capabilities(&reader, &it.body)?);
            }
            (Structure::Block(it), "node_pool_config") => {
                namespace.node_pool_configuration = Some(node_pools(&reader, &it.body)?);
            }
            _ => return Err(unknown(&reader, item, "in a namespace", KNOWN)),
        }
    }
    if namespace.name.is_empty() {
        return Err("there is no name: want name = \"dev\"".to_owned());
    }
    Ok(namespace)
}

fn unknown(reader: &Reader<'_>, item: &Structure, place: &str, known: &str) -> String {
    let word = name(item);
    match REFUSED.iter().find(|(words, _)| words.contains(&word)) {
        Some((_, instead)) => reader.beside(item, &format!("{word:?}: {instead}")),
        None => reader.stranger(item, place, known),
    }
}

fn capabilities(reader: &Reader<'_>, body: &Body) -> Result<v1::NamespaceCapabilities, String> {
    let mut capabilities = v1::NamespaceCapabilities::default();
    for item in body {
        match (item, name(item)) {
            (Structure::Attribute(it), "enabled_task_drivers") => {
                capabilities.enabled_task_drivers = texts(reader, &it.value)?;
            }
            (Structure::Attribute(it), "disabled_task_drivers") => {
                capabilities.disabled_task_drivers = texts(reader, &it.value)?;
            }
            _ => {
                let known = "enabled_task_drivers or disabled_task_drivers";
                return Err(unknown(reader, item, "in capabilities", known));
            }
        }
    }
    Ok(capabilities)
}

fn node_pools(
    reader: &Reader<'_>,
    body: &Body,
) -> Result<v1::NamespaceNodePoolConfiguration, String> {
    let mut rules = v1::NamespaceNodePoolConfiguration::default();
    for item in body {
        match (item, name(item)) {
            (Structure::Attribute(it), "default") => rules.default = reader.string(&it.value)?,
            (Structure::Attribute(it), "allowed") => {
                let patterns = texts(reader, &it.value)?;
                rules.allowed = Some(v1::NodePoolPatterns { patterns });
            }
            (Structure::Attribute(it), "denied") => rules.denied = texts(reader, &it.value)?,
            _ => {
                let known = "default, allowed or denied";
                return Err(unknown(reader, item, "in a node_pool_config", known));
            }
        }
    }
    Ok(rules)
}

fn texts(reader: &Reader<'_>, value: &Expression) -> Result<Vec<String>, String> {
    let items = value
        .as_array()
        .ok_or_else(|| reader.at(value, "want a list, as in [\"raw_exec\"]"))?;
    items.iter().map(|item| reader.string(item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    /// As `namespace()` of the fixtures.
    const DEV: &str = r#"
name        = "dev"
description = "For trying out"

meta {
  owner = "sre"
}

capabilities {
  enabled_task_drivers  = ["raw_exec", "mock_driver"]
  disabled_task_drivers = ["mock_driver"]
}

node_pool_config {
  default = "batch"
  allowed = ["batch", "gpu-*"]
}
"#;

    fn dev() -> v1::Namespace {
        v1::Namespace {
            create_index: 0,
            modify_index: 0,
            ..fixtures::namespace()
        }
    }

    #[test]
    fn a_file_says_all_that_there_is_to_a_namespace() {
        assert_eq!(from_hcl(DEV).unwrap(), dev());
        let namespace = fixtures::namespace();
        let shown = crate::json::namespace::Namespace::from(&namespace);
        let shown = crate::output::json::pretty(&shown);
        assert_eq!(from_json(&shown).unwrap(), dev());
        let default = fixtures::default_namespace();
        let shown = crate::json::namespace::Namespace::from(&default);
        let shown = crate::output::json::pretty(&shown);
        assert_eq!(from_json(&shown).unwrap(), default);
        let example = include_str!("../../examples/namespaces/dev.hcl");
        assert_eq!(from_hcl(example).unwrap().name, "dev");
    }

    #[test]
    fn what_is_left_out_is_not_set() {
        let plain = v1::Namespace {
            name: "dev".to_owned(),
            ..v1::Namespace::default()
        };
        assert_eq!(from_hcl("name = \"dev\"").unwrap(), plain);
        let others = "{\"Name\": \"dev\", \"Quota\": \"\", \"Meta\": null, \"Hash\": \"x=\"}";
        assert_eq!(from_json(others).unwrap(), plain);
        // Nothing but the default pool is not the same as every pool.
        let none = from_hcl("name = \"dev\"\nnode_pool_config {\n allowed = []\n}").unwrap();
        let rules = none.node_pool_configuration.unwrap();
        assert_eq!(rules.allowed, Some(v1::NodePoolPatterns::default()));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, want) in [
            ("", "there is no name"),
            (
                "nam = \"x\"",
                "line 1: \"nam\" is not expected in a namespace: want name",
            ),
            (
                "name = \"x\"\nquota = \"q\"",
                "line 2: \"quota\": there are no quotas",
            ),
            (
                "capabilities {\n  enabled_network_modes = [\"bridge\"]\n}",
                "line 2: \"enabled_network_modes\": groups have no network modes",
            ),
            (
                "capabilities {\n  enabled_task_drivers = \"raw_exec\"\n}",
                "line 2: want a list",
            ),
            (
                "node_pool_config {\n  pools = []\n}",
                "line 2: \"pools\" is not expected in a node_pool_config",
            ),
            ("vault {\n}", "line 1: \"vault\": neither Vault nor Consul"),
        ] {
            let problem = from_hcl(text).unwrap_err();
            assert!(problem.contains(want), "{text}: {problem}");
        }
        let deep = format!("a = {}", "[".repeat(100_000));
        assert!(from_hcl(&deep).unwrap_err().contains("more than 32 deep"));
        let problem = from_json("{\"Name\": \"a\", \"Quota\": \"q\"}").unwrap_err();
        assert!(problem.contains("there are no quotas"), "{problem}");
    }
}
