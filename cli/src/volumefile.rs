//! Volume files: what `volume register` reads, as HCL or as the API's JSON.

use std::path::Path;

use hcl_edit::structure::{Body, Structure};
use proto::v1;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::Error;
use crate::jobfile::{is_json, name_of, text_of};
use crate::poolfile::{MAX_DEPTH, Reader, depth, name};

/// What `volume init` writes.
pub(crate) const EXAMPLE_HCL: &str = r#"# What jobs ask for: source = "data" in a volume block of type "host".
name = "data"
type = "host"

# The node that has the directory: an id of 'kafila node status', or the start of one.
node_id = "8a3f2c1e"

# The directory, which has to be there already.
host_path = "/srv/data"

# In which ways it may be used; a job asks for one of them with access_mode. There are
# "single-node-reader-only", "single-node-writer", "single-node-multi-writer" and
# "single-node-single-writer", with which one allocation writes and no other.
capability {
  access_mode     = "single-node-single-writer"
  attachment_mode = "file-system"
}
"#;

/// The same as JSON.
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

/// What a file may say.
const KNOWN: &str = "name, type, namespace, node_id, host_path or capability";
/// What is for volumes that somebody else makes, with what works instead.
const REFUSED: [(&[&str], &str); 2] = [
    (
        &[
            "plugin_id",
            "parameters",
            "capacity",
            "capacity_min",
            "capacity_max",
            "secrets",
        ],
        "directories are not made here: remove it, make the directory on the node and name it in \
         host_path",
    ),
    (
        &["node_pool", "constraint"],
        "nodes are not chosen here: remove it, and name the node in node_id",
    ),
];

/// Reads the volume that a file describes; `-` is standard input.
///
/// # Errors
/// It cannot be read, or describes no volume.
pub(crate) fn read(path: &Path, json: bool) -> Result<v1::Volume, Error> {
    let name = name_of(path);
    let text = text_of(path)
        .map_err(|error| Error::text(format!("Error reading volume file {name}: {error}")))?;
    let parsed = if json || is_json(&text) {
        from_json(&text)
    } else {
        from_hcl(&text)
    };
    parsed.map_err(|problem| Error::text(format!("Error parsing volume file {name}: {problem}")))
}

/// The object of the HTTP API. What servers set is taken and ignored, so that what `status -json`
/// prints can be registered again.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Volume {
    #[serde(default)]
    namespace: String,
    #[serde(default, rename = "ID")]
    id: String,
    name: String,
    #[serde(default, rename = "Type")]
    volume_type: String,
    #[serde(default, rename = "NodeID")]
    node_id: String,
    #[serde(default)]
    host_path: String,
    #[serde(default)]
    requested_capabilities: Vec<Capability>,
    #[serde(default, rename = "NodePool")]
    _node_pool: IgnoredAny,
    #[serde(default, rename = "State")]
    _state: IgnoredAny,
    #[serde(default, rename = "CreateIndex")]
    _create_index: IgnoredAny,
    #[serde(default, rename = "CreateTime")]
    _create_time: IgnoredAny,
    #[serde(default, rename = "ModifyIndex")]
    _modify_index: IgnoredAny,
    #[serde(default, rename = "ModifyTime")]
    _modify_time: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Capability {
    #[serde(default)]
    access_mode: String,
    #[serde(default)]
    attachment_mode: String,
}

fn from_json(text: &str) -> Result<v1::Volume, String> {
    let volume: Volume = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let capabilities = volume.requested_capabilities.into_iter();
    let volume = v1::Volume {
        namespace: volume.namespace,
        id: volume.id,
        name: volume.name,
        r#type: volume.volume_type,
        node_id: volume.node_id,
        host_path: volume.host_path,
        capabilities: capabilities
            .map(|capability| v1::VolumeCapability {
                access_mode: capability.access_mode,
                attachment_mode: capability.attachment_mode,
            })
            .collect(),
        ..v1::Volume::default()
    };
    Ok(of_usual_type(volume))
}

fn from_hcl(text: &str) -> Result<v1::Volume, String> {
    if depth(text) > MAX_DEPTH {
        return Err(format!("brackets stand more than {MAX_DEPTH} deep"));
    }
    let body = hcl_edit::parser::parse_body(text).map_err(|error| error.to_string())?;
    let reader = Reader { text };
    let mut volume = v1::Volume::default();
    for item in &body {
        let field = match (item, name(item)) {
            (Structure::Block(block), "capability") => {
                volume.capabilities.push(capability(&reader, &block.body)?);
                continue;
            }
            (Structure::Attribute(_), "name") => &mut volume.name,
            (Structure::Attribute(_), "id") => &mut volume.id,
            (Structure::Attribute(_), "type") => &mut volume.r#type,
            (Structure::Attribute(_), "namespace") => &mut volume.namespace,
            (Structure::Attribute(_), "node_id") => &mut volume.node_id,
            (Structure::Attribute(_), "host_path") => &mut volume.host_path,
            (_, word) => {
                let mut refused = REFUSED.iter();
                let refused = refused.find(|(words, _)| words.contains(&word));
                return Err(match refused {
                    Some((_, instead)) => reader.beside(item, &format!("{word:?}: {instead}")),
                    None => reader.stranger(item, "in a volume", KNOWN),
                });
            }
        };
        if let Structure::Attribute(attribute) = item {
            *field = reader.string(&attribute.value)?;
        }
    }
    Ok(of_usual_type(volume))
}

/// What names no type is of the only one.
fn of_usual_type(mut volume: v1::Volume) -> v1::Volume {
    if volume.r#type.is_empty() {
        volume.r#type = "host".to_owned();
    }
    volume
}

fn capability(reader: &Reader<'_>, body: &Body) -> Result<v1::VolumeCapability, String> {
    let mut capability = v1::VolumeCapability::default();
    for item in body {
        match (item, name(item)) {
            (Structure::Attribute(it), "access_mode") => {
                capability.access_mode = reader.string(&it.value)?;
            }
            (Structure::Attribute(it), "attachment_mode") => {
                capability.attachment_mode = reader.string(&it.value)?;
            }
            _ => {
                let known = "access_mode or attachment_mode";
                return Err(reader.stranger(item, "in a capability", known));
            }
        }
    }
    Ok(capability)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_init_writes_can_be_registered() {
        assert_eq!(from_hcl(EXAMPLE_HCL).unwrap(), example());
        assert_eq!(from_json(EXAMPLE_JSON).unwrap(), example());
        let shown = crate::output::json::pretty(&crate::json::volume::Volume::from(&example()));
        assert_eq!(from_json(&shown).unwrap(), example());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, want) in [
            (
                "nam = \"x\"",
                "line 1: \"nam\" is not expected in a volume: want name",
            ),
            (
                "name = \"x\"\ncapacity_min = \"1GiB\"",
                "line 2: \"capacity_min\": directories are not made here",
            ),
            (
                "constraint {}",
                "line 1: \"constraint\": nodes are not chosen here",
            ),
            (
                "capability {\n  mode = 1\n}",
                "line 2: \"mode\" is not expected in a capability",
            ),
            ("name = [1]", "line 1: want a text in quotes"),
            ("name", "1"),
        ] {
            let problem = from_hcl(text).unwrap_err();
            assert!(problem.contains(want), "{text}: {problem}");
        }
        let deep = format!("a = {}", "[".repeat(100_000));
        assert!(from_hcl(&deep).unwrap_err().contains("more than 32 deep"));
        let problem = from_json("{\"Name\": \"a\", \"Path\": \"x\"}").unwrap_err();
        assert!(problem.contains("unknown field `Path`"), "{problem}");
    }
}
