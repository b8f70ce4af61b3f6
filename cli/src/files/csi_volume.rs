//! Files of storage systems' volumes: attributes and blocks at the top level, or JSON of the HTTP API.

use std::path::Path;

use hcl::schema::{
    Kind, Schema, attribute, many, named, once, plain, refused_argument, refused_block,
};
use hcl::settings::Layout;
use jobspec::MAX_TEXT_BYTES;
use proto::v1;
use serde_json::{Map, Value};

use super::settings::{self, Described};
use super::text::{is_json, text_of};
use crate::error::Error;
use crate::json::csi::CsiVolume;
use crate::output::colour::Colour;

/// The file that `volume init -type=csi` writes.
pub(crate) const EXAMPLE_HCL: &str = r#"# The name that jobs request: source = "data" in a volume block of type "csi".
id   = "data"
name = "data"
type = "csi"

# The plugin that serves the volume: the id of a csi_plugin block.
plugin_id = "ebs"

# Bounds of the size of a new volume, for 'kafila volume create'.
capacity_min = "10GiB"
capacity_max = "20GiB"

# The storage system's id of an existing volume, for 'kafila volume register'.
# external_id = "vol-0123456789abcdef0"

# A use that jobs may request; write one block for each.
capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

# Options of mounts for jobs without their own.
mount_options {
  fs_type     = "ext4"
  mount_flags = ["noatime"]
}

# Passed to the plugin when it creates the volume.
parameters {
  type = "gp3"
}
"#;

/// The same object as JSON.
pub(crate) const EXAMPLE_JSON: &str = r#"{
    "ID": "data",
    "Name": "data",
    "Type": "csi",
    "PluginID": "ebs",
    "RequestedCapacityMin": 10737418240,
    "RequestedCapacityMax": 21474836480,
    "RequestedCapabilities": [
        {
            "AccessMode": "single-node-writer",
            "AttachmentMode": "file-system"
        }
    ],
    "MountOptions": {
        "FSType": "ext4",
        "MountFlags": ["noatime"]
    },
    "Parameters": {
        "type": "gp3"
    }
}
"#;

const NO_SECRETS: &str = "Kafila keeps no secrets of volumes yet; give them to the plugin's task, as \
                          by a template with nomadVar";

static VOLUME: Schema = Schema {
    blocks: &[
        many(&CAPABILITY, "RequestedCapabilities"),
        once(&MOUNT_OPTIONS, "MountOptions"),
        once(&TOPOLOGY_REQUEST, "RequestedTopologies"),
    ],
    refused: &[
        refused_block("secrets", "Secrets", NO_SECRETS),
        refused_argument(
            "node_id",
            "NodeID",
            "a storage system's volume is on no node; remove it",
        ),
        refused_argument(
            "host_path",
            "HostPath",
            "a storage system's volume is no directory of a node; remove it",
        ),
    ],
    finish: Some(finish),
    ..plain(
        "volume",
        &[
            named("id", Kind::Text),
            named("name", Kind::Text),
            named("type", Kind::Text),
            named("namespace", Kind::Text),
            named("external_id", Kind::Text),
            named("plugin_id", Kind::Text),
            named("snapshot_id", Kind::Text),
            named("clone_id", Kind::Text),
            attribute("capacity_min", "RequestedCapacityMin", Kind::Text),
            attribute("capacity_max", "RequestedCapacityMax", Kind::Text),
            named("parameters", Kind::TextMap),
            named("context", Kind::TextMap),
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

static MOUNT_OPTIONS: Schema = plain(
    "mount_options",
    &[
        attribute("fs_type", "FSType", Kind::Text),
        named("mount_flags", Kind::TextList),
    ],
);

static TOPOLOGY_REQUEST: Schema = Schema {
    blocks: &[once(&REQUIRED, "Required"), once(&PREFERRED, "Preferred")],
    finish: Some(flatten_topologies),
    ..plain("topology_request", &[])
};

static REQUIRED: Schema = Schema {
    blocks: &[many(&TOPOLOGY, "Topologies")],
    ..plain("required", &[])
};

static PREFERRED: Schema = Schema {
    blocks: &[many(&TOPOLOGY, "Topologies")],
    ..plain("preferred", &[])
};

static TOPOLOGY: Schema = plain("topology", &[named("segments", Kind::TextMap)]);

/// Replaces `required { topology { … } }` by the list of the HTTP API.
fn flatten_topologies(request: &mut Map<String, Value>) -> Result<(), String> {
    for value in request.values_mut() {
        if let Some(list) = value.get_mut("Topologies") {
            *value = list.take();
        }
    }
    Ok(())
}

/// Reads sizes, which HCL files write as texts.
fn finish(volume: &mut Map<String, Value>) -> Result<(), String> {
    if !volume.contains_key("ID") {
        return Err("A volume needs an id: write id = \"data\"".to_owned());
    }
    for (key, name) in [
        ("RequestedCapacityMin", "capacity_min"),
        ("RequestedCapacityMax", "capacity_max"),
    ] {
        if let Some(Value::String(text)) = volume.get(key) {
            let bytes = bytes(text).ok_or_else(|| {
                format!("{name} {text:?} is no size: write one such as \"10GiB\" or \"500MB\"")
            })?;
            volume.insert(key.to_owned(), bytes.into());
        }
    }
    Ok(())
}

/// Reads a size, as in `10GiB` (powers of 1024) or `10GB` and `10G` (powers of 1000).
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: f64 = number.parse().ok()?;
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit.strip_suffix('b').unwrap_or(&unit);
    let (prefix, base) = match unit.strip_suffix('i') {
        Some(prefix) => (prefix, 1024_u64),
        None => (unit, 1000),
    };
    let power = ["", "k", "m", "g", "t", "p"];
    let power = power.iter().position(|known| *known == prefix)?;
    let factor = base.pow(u32::try_from(power).ok()?);
    #[expect(
        clippy::cast_precision_loss,
        reason = "sizes of volumes are not exact to the byte"
    )]
    let bytes = number * factor as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range, and not negative"
    )]
    let bytes = (0.0..9e18).contains(&bytes).then_some(bytes as u64);
    bytes
}

/// Tells whether a file's text describes a storage system's volume: whether its type is `csi`. A text that
/// cannot be read describes none.
pub(crate) fn is_csi(text: &str) -> bool {
    let found = if is_json(text) {
        let object: Option<Value> = serde_json::from_str(text).ok();
        object.and_then(|object| Some(object.get("Type")?.as_str()?.to_owned()))
    } else {
        hcl::settings::text_attribute(text, MAX_TEXT_BYTES, "type")
    };
    found.is_some_and(|found| found == "csi")
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
) -> Result<v1::CsiVolume, Error> {
    settings::read_text::<CsiVolume>(path, text, json, colour)
}

/// Reads a file's text.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn text(path: &Path) -> Result<String, Error> {
    text_of(path).map_err(|error| {
        let path = super::text::shown(path);
        Error::text(format!("Error reading volume file {path}: {error}"))
    })
}

impl Described for CsiVolume {
    type Message = v1::CsiVolume;

    const NOUN: &'static str = "volume";
    const SCHEMA: &'static Schema = &VOLUME;
    const LAYOUT: Layout = Layout::Body;

    fn into_message(self) -> Result<v1::CsiVolume, String> {
        Ok(self.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<v1::CsiVolume, String> {
        settings::parse::<CsiVolume>(text)
    }

    #[test]
    fn the_written_examples_are_the_same_volume() {
        let from_hcl = parse(EXAMPLE_HCL).unwrap();
        assert_eq!(parse(EXAMPLE_JSON).unwrap(), from_hcl);
        assert_eq!(from_hcl.capacity_min_bytes, 10 << 30);
        let shown = crate::output::json::pretty(&CsiVolume::from(&from_hcl));
        assert_eq!(parse(&shown).unwrap(), from_hcl);
        for text in [EXAMPLE_HCL, EXAMPLE_JSON] {
            assert!(is_csi(text), "{text}");
        }
        for text in [
            crate::files::volume::EXAMPLE_HCL,
            crate::files::volume::EXAMPLE_JSON,
        ] {
            assert!(!is_csi(text), "{text}");
        }
    }

    #[test]
    fn only_a_type_at_the_top_level_makes_a_file_one_of_a_storage_system() {
        for (text, want) in [
            ("type = \"csi\"", true),
            ("id = \"a\"; # x\ntype=\"csi\"", false),
            ("id = \"a\"\n  type   = \"${lower(\"CSI\")}\"", true),
            ("# type = \"csi\"\ntype = \"host\"", false),
            ("type = \"host\"\nparameters {\n  type = \"csi\"\n}", false),
            ("name = <<EOT\ntype = \"csi\"\nEOT\n", false),
            ("{\"Type\":\"csi\"}", true),
            (
                "{\"Type\": \"host\", \"Context\": {\"Type\": \"csi\"}}",
                false,
            ),
            ("{\"Name\": \"Type: csi\"}", false),
            ("type = [", false),
        ] {
            assert_eq!(is_csi(text), want, "{text}");
        }
    }

    #[test]
    fn topologies_are_those_of_the_api() {
        let text = "id = \"a\"\ntopology_request {\n  required {\n    topology {\n      segments {\n        \
                    zone = \"a\"\n      }\n    }\n    topology {\n      segments {\n        zone = \"b\"\n      }\n    \
                    }\n  }\n}";
        let volume = parse(text).unwrap();
        let zones = volume.required_topologies.iter();
        let zones: Vec<&str> = zones.map(|one| one.segments["zone"].as_str()).collect();
        assert_eq!(zones, ["a", "b"]);
    }

    #[test]
    fn sizes_have_units_of_1000_and_1024() {
        for (text, want) in [
            ("10GiB", Some(10 << 30)),
            ("1.5 GB", Some(1_500_000_000)),
            ("2G", Some(2_000_000_000)),
            ("512Mi", Some(512 << 20)),
            ("7", Some(7)),
            ("7B", Some(7)),
            ("", None),
            ("GiB", None),
            ("1XiB", None),
            ("-1G", None),
        ] {
            assert_eq!(bytes(text), want, "{text}");
        }
    }

    #[test]
    fn errors_name_the_field_and_the_fix() {
        for (text, want) in [
            ("type = \"csi\"", "A volume needs an id"),
            (
                "id = \"a\"\ncapacity_min = \"much\"",
                "capacity_min \"much\" is no size",
            ),
            (
                "id = \"a\"\nsecrets {\n  k = \"v\"\n}",
                "Kafila keeps no secrets of volumes yet",
            ),
            (
                "id = \"a\"\nhost_path = \"/a\"",
                "is no directory of a node",
            ),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(want), "{text}: {problem}");
        }
    }
}
