//! Node pool files: a block `node_pool "name" { … }`, or JSON of the HTTP API.

use std::path::Path;

use hcl::schema::{Kind, Label, Schema, named, once, plain};
use hcl::settings::Layout;
use proto::v1;

use super::settings::{self, Described};
use crate::error::Error;
use crate::json::node_pool::NodePool;
use crate::output::colour::Colour;

/// The file that `node pool init` writes.
pub(crate) const EXAMPLE_HCL: &str = r#"node_pool "example" {
  description = "Example node pool"

  # Labels of your own, shown by 'kafila node pool info'.
  meta {
    environment = "production"
    owner       = "sre"
  }

  # Overrides of the cluster's scheduler configuration ('kafila operator scheduler get-config')
  # for jobs in this pool. Settings left out keep the cluster's value.
  scheduler_config {
    scheduler_algorithm             = "spread"
    memory_oversubscription_enabled = true
  }
}
"#;

/// The same object as JSON.
pub(crate) const EXAMPLE_JSON: &str = r#"{
    "Name": "example",
    "Description": "Example node pool",
    "Meta": {
        "environment": "production",
        "owner": "sre"
    },
    "SchedulerConfiguration": {
        "SchedulerAlgorithm": "spread",
        "MemoryOversubscriptionEnabled": true
    }
}
"#;

static NODE_POOL: Schema = Schema {
    label: Some(Label {
        noun: "name",
        json: "Name",
    }),
    blocks: &[once(&SCHEDULER_CONFIG, "SchedulerConfiguration")],
    ..plain(
        "node_pool",
        &[
            named("description", Kind::Text),
            named("meta", Kind::TextMap),
        ],
    )
};

static SCHEDULER_CONFIG: Schema = plain(
    "scheduler_config",
    &[
        named("scheduler_algorithm", Kind::Text),
        named("memory_oversubscription_enabled", Kind::Flag),
    ],
);

/// Reads the node pool that a file describes.
///
/// # Errors
/// The file cannot be read, or its text describes no node pool.
pub(crate) fn read(path: &Path, json: bool, colour: Colour) -> Result<v1::NodePool, Error> {
    settings::read::<NodePool>(path, json, colour)
}

impl Described for NodePool {
    type Message = v1::NodePool;

    const NOUN: &'static str = "node pool";
    const SCHEMA: &'static Schema = &NODE_POOL;
    const LAYOUT: Layout = Layout::Block;

    fn into_message(self) -> Result<v1::NodePool, String> {
        Ok(self.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<v1::NodePool, String> {
        settings::parse::<NodePool>(text)
    }

    fn example() -> v1::NodePool {
        let meta = [("environment", "production"), ("owner", "sre")];
        v1::NodePool {
            name: "example".to_owned(),
            description: "Example node pool".to_owned(),
            meta: meta.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            scheduler_configuration: Some(v1::NodePoolSchedulerConfiguration {
                scheduler_algorithm: "spread".to_owned(),
                memory_oversubscription_enabled: Some(true),
            }),
            ..v1::NodePool::default()
        }
    }

    #[test]
    fn the_written_examples_can_be_applied() {
        assert_eq!(parse(EXAMPLE_HCL).unwrap(), example());
        assert_eq!(parse(EXAMPLE_JSON).unwrap(), example());
    }

    #[test]
    fn fields_left_out_are_not_set() {
        let plain = v1::NodePool {
            name: "gpu".to_owned(),
            ..v1::NodePool::default()
        };
        assert_eq!(parse("node_pool \"gpu\" {}").unwrap(), plain);
        assert_eq!(parse("{\"Name\": \"gpu\"}").unwrap(), plain);
        let meta = parse("node_pool \"gpu\" {\n meta = { a = 1, \"b c\" = true }\n}").unwrap();
        assert_eq!(meta.meta["a"], "1");
        assert_eq!(meta.meta["b c"], "true");
    }

    #[test]
    fn values_may_be_computed() {
        let pool = parse("node_pool \"a\" {\n  description = upper(\"x${1 + 1}\")\n}").unwrap();
        assert_eq!(pool.description, "X2");
    }

    #[test]
    fn errors_name_the_line_the_field_and_the_fix() {
        let table = [
            (
                "",
                "f.hcl:1,1-1: Missing node_pool block; A node pool file holds one",
            ),
            (
                "job \"x\" {}",
                "f.hcl:1,1-8: Unsupported block type; Blocks of type \"job\" are not expected here. \
                 Expected here: node_pool.",
            ),
            ("node_pool {}", "f.hcl:1,1-10: Missing name for node_pool"),
            (
                "node_pool \"a\" {}\nnode_pool \"b\" {}",
                "f.hcl:2,1-14: Duplicate node_pool block",
            ),
            (
                "node_pool \"a\" {\n  descripton = \"x\"\n}",
                "f.hcl:2,3-13: Unsupported argument; An argument named \"descripton\" is not expected \
                 here. Did you mean \"description\"? Expected here: description and meta.",
            ),
            (
                "node_pool \"a\" {\n  scheduler_config {\n    algorithm = \"x\"\n  }\n}",
                "f.hcl:3,5-14: Unsupported argument",
            ),
            (
                "node_pool \"a\" {\n  scheduler_config {\n    memory_oversubscription_enabled = 7\n  }\n}",
                "a bool is required; got a number",
            ),
            (
                "node_pool \"a\" {\n  description = prod\n}",
                "f.hcl:2,17-21: Unknown name; prod has no value in this file: write a text in quotes, \
                 \"prod\"",
            ),
            (
                "node_pool \"a\" {\n  description = var.stage.name\n}",
                "f.hcl:2,17-31: Unknown name; var.stage.name has no value",
            ),
            (
                "node_pool \"a\" {\n  meta = 3\n}",
                "f.hcl:2,10-11: Incorrect attribute value type",
            ),
            ("node_pool \"a\" {", "f.hcl:1,"),
        ];
        for (text, expected) in table {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
        let deep = format!("a = {}", "[".repeat(100_000));
        assert!(parse(&deep).unwrap_err().contains("deep"));
        let problem = parse("{\"Name\": \"a\", \"Descripton\": \"x\"}").unwrap_err();
        assert!(problem.contains("unknown field `Descripton`"), "{problem}");
    }
}
