//! Volume files: attributes and blocks at the top level, or JSON of the HTTP API.

use std::path::Path;

use hcl::schema::{Kind, Refused, Schema, many, named, plain, refused_argument, refused_block};
use hcl::settings::Layout;
use proto::v1;
use serde_json::{Map, Value};

use super::settings::{self, Described};
use crate::error::Error;
use crate::json::volume::Volume;
use crate::output::colour::Colour;

/// The file that `volume init` writes.
pub(crate) const EXAMPLE_HCL: &str = r#"# The name that jobs request: source = "data" in a volume block of type "host".
name = "data"
type = "host"

# The node with the directory: its ID from 'kafila node status', or a unique prefix of it.
node_id = "8a3f2c1e"

# The directory. It must exist before a task uses the volume.
host_path = "/srv/data"

# An access mode that jobs may request. One of "single-node-reader-only", "single-node-writer",
# "single-node-single-writer" (at most one allocation may write) and "single-node-multi-writer".
# Write one capability block for each mode.
capability {
  access_mode     = "single-node-single-writer"
  attachment_mode = "file-system"
}
"#;

/// The same object as JSON.
pub(crate) const EXAMPLE_JSON: &str = r#"{
    "Name": "data",
    "Type": "host",
    "NodeID": "8a3f2c1e",
    "HostPath": "/srv/data",
    "RequestedCapabilities": [
        {
            "AccessMode": "single-node-single-writer",
            "AttachmentMode": "file-system"
        }
    ]
}
"#;

const NO_PROVISIONING: &str = "Kafila creates no directories; remove it, create the directory on \
                               the node and name it in host_path";
const NO_PLACEMENT: &str = "Kafila chooses no node for a volume; remove it, and name the node in \
                            node_id";

static VOLUME: Schema = Schema {
    blocks: &[many(&CAPABILITY, "RequestedCapabilities")],
    refused: &[
        not_provisioned("plugin_id"),
        not_provisioned("capacity"),
        not_provisioned("capacity_min"),
        not_provisioned("capacity_max"),
        refused_block("parameters", "", NO_PROVISIONING),
        refused_block("secrets", "", NO_PROVISIONING),
        refused_argument("node_pool", "", NO_PLACEMENT),
        refused_block("constraint", "", NO_PLACEMENT),
    ],
    finish: Some(has_name),
    ..plain(
        "volume",
        &[
            named("name", Kind::Text),
            named("id", Kind::Text),
            named("type", Kind::Text),
            named("namespace", Kind::Text),
            named("node_id", Kind::Text),
            named("host_path", Kind::Text),
        ],
    )
};

static CAPABILITY: Schema = plain(
    "capability",
    &[
        named("access_mode", Kind::Text),
        named("attachment_mode", Kind::Text),
    ],
);

const fn not_provisioned(name: &'static str) -> Refused {
    refused_argument(name, "", NO_PROVISIONING)
}

fn has_name(object: &mut Map<String, Value>) -> Result<(), String> {
    if object.contains_key("Name") {
        return Ok(());
    }
    Err("A volume needs a name: write name = \"data\"".to_owned())
}

/// Reads the volume in `text`, the content of the file at `path`.
///
/// # Errors
/// The text describes no volume.
pub(crate) fn read(
    path: &Path,
    text: &str,
    json: bool,
    colour: Colour,
) -> Result<v1::Volume, Error> {
    settings::read_text::<Volume>(path, text, json, colour)
}

impl Described for Volume {
    type Message = v1::Volume;

    const NOUN: &'static str = "volume";
    const SCHEMA: &'static Schema = &VOLUME;
    const LAYOUT: Layout = Layout::Body;

    fn into_message(self) -> Result<v1::Volume, String> {
        Ok(self.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<v1::Volume, String> {
        settings::parse::<Volume>(text)
    }

    fn example() -> v1::Volume {
        v1::Volume {
            name: "data".to_owned(),
            r#type: "host".to_owned(),
            node_id: "8a3f2c1e".to_owned(),
            host_path: "/srv/data".to_owned(),
            capabilities: vec![v1::VolumeCapability {
                access_mode: "single-node-single-writer".to_owned(),
                attachment_mode: "file-system".to_owned(),
            }],
            ..v1::Volume::default()
        }
    }

    #[test]
    fn the_written_examples_can_be_registered() {
        assert_eq!(parse(EXAMPLE_HCL).unwrap(), example());
        assert_eq!(parse(EXAMPLE_JSON).unwrap(), example());
        let shown = crate::output::json::pretty(&crate::json::volume::Volume::from(&example()));
        assert_eq!(parse(&shown).unwrap(), example());
    }

    #[test]
    fn errors_name_the_line_the_field_and_the_fix() {
        for (text, want) in [
            (
                "nam = \"x\"",
                "f.hcl:1,1-4: Unsupported argument; An argument named \"nam\" is not expected here. Did \
                 you mean \"name\"?",
            ),
            ("type = \"host\"", "A volume needs a name"),
            (
                "name = \"x\"\ncapacity_min = \"1GiB\"",
                "f.hcl:2,1-13: Not supported; argument \"capacity_min\" is not supported by this \
                 version of Kafila: Kafila creates no directories",
            ),
            (
                "constraint {}",
                "f.hcl:1,1-11: Not supported; block \"constraint\"",
            ),
            (
                "name = \"x\"\ncapability {\n  mode = 1\n}",
                "f.hcl:3,3-7: Unsupported argument; An argument named \"mode\"",
            ),
            ("name = [1]", "f.hcl:1,8-11: Incorrect attribute value type"),
            ("name", "f.hcl:1,"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(want), "{text}: {problem}");
        }
        let deep = format!("a = {}", "[".repeat(100_000));
        assert!(parse(&deep).unwrap_err().contains("deep"));
        let problem = parse("{\"Name\": \"a\", \"Path\": \"x\"}").unwrap_err();
        assert!(problem.contains("unknown field `Path`"), "{problem}");
    }
}
