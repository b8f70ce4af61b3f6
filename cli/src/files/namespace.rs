//! Namespace files: attributes and blocks at the top level, or JSON of the HTTP API.

use std::path::Path;

use hcl::schema::{Kind, Refused, Schema, named, once, plain, refused_argument, refused_block};
use hcl::settings::Layout;
use proto::v1;
use serde_json::{Map, Value};

use super::settings::{self, Described};
use crate::error::Error;
use crate::json::namespace::{NO_QUOTAS, Namespace};
use crate::output::colour::Colour;

const NO_NETWORK_MODES: &str = "every group uses the host's network; remove it";

static NAMESPACE: Schema = Schema {
    blocks: &[
        once(&CAPABILITIES, "Capabilities"),
        once(&NODE_POOL_CONFIG, "NodePoolConfiguration"),
    ],
    refused: &[
        refused_argument("quota", "", NO_QUOTAS),
        refused_block("vault", "", "Vault is not used; remove it"),
        refused_block("consul", "", "Consul is not used; remove it"),
    ],
    finish: Some(has_name),
    ..plain(
        "namespace",
        &[
            named("name", Kind::Text),
            named("description", Kind::Text),
            named("meta", Kind::TextMap),
        ],
    )
};

static CAPABILITIES: Schema = Schema {
    refused: &[
        no_network_mode("enabled_network_modes"),
        no_network_mode("disabled_network_modes"),
    ],
    ..plain(
        "capabilities",
        &[
            named("enabled_task_drivers", Kind::TextList),
            named("disabled_task_drivers", Kind::TextList),
        ],
    )
};

static NODE_POOL_CONFIG: Schema = plain(
    "node_pool_config",
    &[
        named("default", Kind::Text),
        named("allowed", Kind::TextList),
        named("denied", Kind::TextList),
    ],
);

const fn no_network_mode(name: &'static str) -> Refused {
    refused_argument(name, "", NO_NETWORK_MODES)
}

fn has_name(object: &mut Map<String, Value>) -> Result<(), String> {
    if object.contains_key("Name") {
        return Ok(());
    }
    Err("A namespace needs a name: write name = \"dev\"".to_owned())
}

/// Reads the namespace that a file describes.
///
/// # Errors
/// The file cannot be read, or its text describes no namespace.
pub(crate) fn read(path: &Path, json: bool, colour: Colour) -> Result<v1::Namespace, Error> {
    settings::read::<Namespace>(path, json, colour)
}

impl Described for Namespace {
    type Message = v1::Namespace;

    const NOUN: &'static str = "namespace";
    const SCHEMA: &'static Schema = &NAMESPACE;
    const LAYOUT: Layout = Layout::Body;

    fn into_message(self) -> Result<v1::Namespace, String> {
        self.try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn parse(text: &str) -> Result<v1::Namespace, String> {
        settings::parse::<Namespace>(text)
    }

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
    fn a_file_may_set_every_field_of_a_namespace() {
        assert_eq!(parse(DEV).unwrap(), dev());
        let namespace = fixtures::namespace();
        let shown = Namespace::from(&namespace);
        let shown = crate::output::json::pretty(&shown);
        assert_eq!(parse(&shown).unwrap(), dev());
        let default = fixtures::default_namespace();
        let shown = Namespace::from(&default);
        let shown = crate::output::json::pretty(&shown);
        assert_eq!(parse(&shown).unwrap(), default);
        let example = include_str!("../../../examples/namespaces/dev.hcl");
        assert_eq!(parse(example).unwrap().name, "dev");
    }

    #[test]
    fn fields_left_out_are_not_set() {
        let plain = v1::Namespace {
            name: "dev".to_owned(),
            ..v1::Namespace::default()
        };
        assert_eq!(parse("name = \"dev\"").unwrap(), plain);
        let others = "{\"Name\": \"dev\", \"Quota\": \"\", \"Meta\": null, \"Hash\": \"x=\"}";
        assert_eq!(parse(others).unwrap(), plain);
        // Nothing but the default pool is not the same as every pool.
        let none = parse("name = \"dev\"\nnode_pool_config {\n allowed = []\n}").unwrap();
        let rules = none.node_pool_configuration.unwrap();
        assert_eq!(rules.allowed, Some(v1::NodePoolPatterns::default()));
    }

    #[test]
    fn errors_name_the_line_the_field_and_the_fix() {
        for (text, want) in [
            (
                "",
                "Invalid namespace file; A namespace needs a name: write name =",
            ),
            (
                "nam = \"x\"",
                "f.hcl:1,1-4: Unsupported argument; An argument named \"nam\" is not expected here. Did \
                 you mean \"name\"? Expected here: name, description and meta.",
            ),
            (
                "name = \"x\"\nquota = \"q\"",
                "f.hcl:2,1-6: Not supported; argument \"quota\" is not supported by this version of \
                 Kafila: a namespace may use the whole cluster; remove it",
            ),
            (
                "name = \"x\"\ncapabilities {\n  enabled_network_modes = [\"bridge\"]\n}",
                "f.hcl:3,3-24: Not supported; argument \"enabled_network_modes\"",
            ),
            (
                "name = \"x\"\ncapabilities {\n  enabled_task_drivers = \"raw_exec\"\n}",
                "f.hcl:3,26-36: Incorrect attribute value type; Inappropriate value for attribute \
                 \"enabled_task_drivers\": a list of strings is required",
            ),
            (
                "name = \"x\"\nnode_pool_config {\n  pools = []\n}",
                "f.hcl:3,3-8: Unsupported argument; An argument named \"pools\"",
            ),
            ("vault {\n}", "f.hcl:1,1-6: Not supported; block \"vault\""),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(want), "{text}: {problem}");
        }
        let deep = format!("a = {}", "[".repeat(100_000));
        assert!(parse(&deep).unwrap_err().contains("deep"));
        let problem = parse("{\"Name\": \"a\", \"Quota\": \"q\"}").unwrap_err();
        assert!(problem.contains("quotas are not supported"), "{problem}");
    }
}
