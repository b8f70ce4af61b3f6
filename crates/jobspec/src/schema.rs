//! The schema of job files: a tree of blocks with their attributes.
//!
//! It follows from the fields that job_spec.proto declares. What job files have beyond them stands in
//! tables, one per noun: labels, short forms, and the blocks of Nomad that this version refuses with
//! advice instead of ignoring them. One schema serves the HCL reader (names), the reader of the HTTP
//! API's JSON (keys), and the messages that list the expected names.

mod extra;
mod group;
mod job;
mod launches;
mod rank;
mod service;
mod task;

use std::sync::LazyLock;

use hcl::schema::{Attribute, Child, Form, Repeat, Schema};
use job_fields::fields::{self, Message};

use self::extra::Extra;

/// The job block.
pub(crate) static JOB: LazyLock<&'static Schema> = LazyLock::new(|| schema("job", &fields::JOB));

const EXTRAS: &[&Extra] = &[
    &job::JOB,
    &group::TASK_GROUP,
    &group::VOLUME_REQUEST,
    &group::NETWORK,
    &group::PORT,
    &task::TASK,
    &task::ACTION,
    &task::TEMPLATE,
    &task::VAULT,
    &task::TASK_SCALING,
    &task::CHANGE_SCRIPT,
    &task::RESOURCES,
    &task::DEVICE_REQUEST,
    &task::VOLUME_MOUNT,
    &task::LOG_CONFIG,
    &rank::CONSTRAINT,
    &rank::AFFINITY,
    &rank::SPREAD_TARGET,
    &service::SERVICE,
    &launches::PERIODIC,
    &launches::SCALING,
];

/// Returns the schema of a block; `name`: its name in a job file.
///
/// It lives as long as the process: called once, for the job, and from there for each block.
fn schema(name: &'static str, message: &'static Message) -> &'static Schema {
    let none = Extra::of(message.name);
    let extra = EXTRAS.iter().find(|extra| extra.message == message.name);
    let extra = extra.copied().unwrap_or(&none);
    let (mut attributes, mut blocks) = (Vec::new(), Vec::<Child>::new());
    for field in message.fields {
        let (message, repeat) = match field.kind {
            fields::Kind::One(message) => (message, Repeat::Once),
            fields::Kind::Many(message) => (message, Repeat::Many),
            fields::Kind::Named(message) => (message, Repeat::Named),
            _ => {
                let is_label = extra.label.is_some_and(|(_, json)| json == field.json);
                if !is_label || !field.hcl.is_empty() {
                    attributes.push(attribute(field));
                }
                continue;
            }
        };
        // Lists that share a name in HCL are filled from the first one when the block is finished.
        let is_taken = blocks.iter().any(|child| child.schema.name == field.hcl);
        let form = if field.hcl.is_empty() || is_taken {
            Form::Api
        } else {
            Form::Both
        };
        // A block that only JSON has goes by its key there.
        let name = if field.hcl.is_empty() {
            field.json
        } else {
            field.hcl
        };
        blocks.push(Child {
            schema: schema(name, message),
            json: field.json,
            repeat,
            form,
        });
    }
    attributes.extend(extra.attributes);
    for (name, json, message) in extra.blocks {
        blocks.push(Child {
            schema: schema(name, message),
            json,
            repeat: Repeat::Many,
            form: Form::Hcl,
        });
    }
    Box::leak(Box::new(Schema {
        name,
        label: extra.label(),
        attributes: attributes.leak(),
        blocks: blocks.leak(),
        refused: extra.refused,
        ignored: extra.ignored,
        finish: extra.finish,
    }))
}

fn attribute(field: &fields::Field) -> Attribute {
    use fields::Kind;
    let kind = match field.kind {
        Kind::Whole | Kind::Unsigned => hcl::schema::Kind::Whole,
        Kind::Flag => hcl::schema::Kind::Flag,
        Kind::TextList => hcl::schema::Kind::TextList,
        Kind::TextMap => hcl::schema::Kind::TextMap,
        Kind::Duration => hcl::schema::Kind::Duration,
        Kind::Object => hcl::schema::Kind::Config,
        // Base64 is checked when the message is made.
        Kind::Text | Kind::Bytes | Kind::One(_) | Kind::Many(_) | Kind::Named(_) => {
            hcl::schema::Kind::Text
        }
    };
    hcl::schema::attribute(field.hcl, field.json, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page that users read.
    const PAGE: &str = include_str!("../../../docs/job-files.md");

    fn names(schema: &'static Schema, out: &mut Vec<&'static str>) {
        out.push(schema.name);
        out.extend(schema.attribute_names());
        out.extend(schema.refused.iter().map(|refused| refused.name));
        out.extend(schema.ignored.iter().map(|ignored| ignored.name));
        for child in schema.hcl_blocks() {
            names(child.schema, out);
        }
    }

    #[test]
    fn the_page_on_job_files_names_every_block_attribute_and_function() {
        let mut known = vec!["job"];
        names(&JOB, &mut known);
        known.extend(hcl::function_names());
        known.retain(|name| !name.is_empty());
        // A label may follow: `group "name"`.
        let is_named =
            |name: &str| PAGE.contains(&format!("`{name}`")) || PAGE.contains(&format!("`{name} "));
        let inline = ["static", "to", "host_network", "percent"];
        let missing: Vec<_> = known
            .iter()
            .filter(|name| !is_named(name) && !inline.contains(name))
            .collect();
        assert!(
            missing.is_empty(),
            "docs/job-files.md does not mention {missing:?}"
        );
    }

    #[test]
    fn every_key_of_a_block_is_there_once() {
        fn check(schema: &'static Schema) {
            let mut keys: Vec<&str> = schema.attributes.iter().map(|a| a.json).collect();
            keys.extend(schema.blocks.iter().map(|child| child.json));
            keys.extend(schema.refused.iter().map(|refused| refused.json));
            keys.extend(schema.label.iter().map(|label| label.json));
            keys.retain(|key| !key.is_empty());
            // The job's label is its id, too.
            let duplicates = usize::from(schema.name == "job");
            let all = keys.len();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len() + duplicates, all, "{}", schema.name);
            schema.blocks.iter().for_each(|child| check(child.schema));
        }
        check(&JOB);
    }
}
