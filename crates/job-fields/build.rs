//! Generates the types of job_spec.proto and the tables of their fields.
//!
//! The names of a field outside of gRPC follow from its name, its type and the options of
//! names.proto, which states the rules.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor, Value};

const FILE: &str = "kafila/v1/job_spec.proto";
const NAMES: &str = "kafila/v1/names.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    for file in [FILE, NAMES] {
        println!("cargo:rerun-if-changed={}", root.join(file).display());
    }
    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_imports(true).open_files([FILE])?;
    let pool = compiler.descriptor_pool();
    let file = pool.get_file_by_name(FILE).ok_or("the file was compiled")?;
    let messages: Vec<_> = file.messages().collect();

    let mut config = prost_build::Config::new();
    config.btree_map(["."]);
    for message in &messages {
        check_units(message)?;
        attributes(&mut config, message);
    }
    config.compile_fds(compiler.file_descriptor_set())?;

    let tables: Vec<String> = messages.iter().map(table).collect();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("fields.rs"), tables.concat())?;
    Ok(())
}

/// Refuses names that end in `_mb`: sizes are in MiB, and only a final `_mib` becomes `MB` in JSON.
fn check_units(message: &MessageDescriptor) -> Result<(), String> {
    for field in message.fields() {
        if let Some(stem) = field.name().strip_suffix("_mb") {
            let name = field.full_name();
            return Err(format!(
                "{name}: write {stem}_mib, whose key in JSON ends in MB"
            ));
        }
    }
    Ok(())
}

/// Gives a message the JSON of the HTTP API.
fn attributes(config: &mut prost_build::Config, message: &MessageDescriptor) {
    let path = format!(".{}", message.full_name());
    let derives = "#[derive(serde::Serialize, serde::Deserialize)]\n#[serde(default)]";
    config.type_attribute(&path, derives);
    for field in message.fields() {
        let with = json_form(&field).map_or(String::new(), |form| {
            format!(", with = \"crate::json::{form}\"")
        });
        let attribute = format!("#[serde(rename = {:?}{with})]", json_name(&field));
        config.field_attribute(format!("{path}.{}", field.name()), attribute);
    }
}

/// Returns the module that writes and reads a field whose JSON is not that of its Rust type.
fn json_form(field: &FieldDescriptor) -> Option<&'static str> {
    if field.is_map() {
        return Some("map");
    }
    if field.is_list() {
        return Some("list");
    }
    match field.kind() {
        Kind::Message(message) => match message.full_name() {
            "google.protobuf.Duration" => Some("duration"),
            "google.protobuf.Struct" => Some("object"),
            _ => None,
        },
        Kind::Bytes => Some("base64"),
        _ => None,
    }
}

/// Returns the table of a message's fields.
fn table(message: &MessageDescriptor) -> String {
    let mut text = format!(
        "/// The fields of `{name}`.\npub static {table}: Message = Message {{\n    name: {name:?},\n    fields: &[\n",
        name = message.name(),
        table = screaming(message.name()),
    );
    for field in message.fields() {
        writeln!(
            text,
            "        Field {{ json: {:?}, hcl: {:?}, kind: {} }},",
            json_name(&field),
            hcl_name(&field),
            kind(&field),
        )
        .expect("a String takes any text");
    }
    text + "    ],\n};\n"
}

fn kind(field: &FieldDescriptor) -> String {
    if let Kind::Message(message) = field.kind() {
        if field.is_map() {
            return match message.map_entry_value_field().kind() {
                Kind::Message(value) => format!("Kind::Named(&{})", screaming(value.name())),
                _ => "Kind::TextMap".to_owned(),
            };
        }
        return match (message.full_name(), field.cardinality()) {
            ("google.protobuf.Duration", _) => "Kind::Duration".to_owned(),
            ("google.protobuf.Struct", _) => "Kind::Object".to_owned(),
            (_, Cardinality::Repeated) => format!("Kind::Many(&{})", screaming(message.name())),
            _ => format!("Kind::One(&{})", screaming(message.name())),
        };
    }
    let kind = match (field.kind(), field.cardinality()) {
        (Kind::String, Cardinality::Repeated) => "TextList",
        (Kind::String, _) => "Text",
        (Kind::Int64, _) => "Whole",
        (Kind::Uint64, _) => "Unsigned",
        (Kind::Bool, _) => "Flag",
        (Kind::Bytes, _) => "Bytes",
        (other, _) => panic!(
            "{}: {other:?} is not a valid type of a job's field",
            field.full_name()
        ),
    };
    format!("Kind::{kind}")
}

fn json_name(field: &FieldDescriptor) -> String {
    if let Some(name) = option(field, "json") {
        return name;
    }
    let words: String = without_unit(field.name()).split('_').map(camel).collect();
    let unit = if field.name().ends_with("_mib") {
        "MB"
    } else {
        ""
    };
    words + unit
}

/// Returns a name without the unit at its end.
fn without_unit(name: &str) -> &str {
    let units = ["_mib", "_mhz", "_ns"].into_iter();
    let mut stems = units.filter_map(|unit| name.strip_suffix(unit));
    stems.next().unwrap_or(name)
}

fn camel(word: &str) -> String {
    if matches!(word, "cpu" | "id" | "ttl") {
        return word.to_uppercase();
    }
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

/// Returns the name in a job file; empty: there is none.
fn hcl_name(field: &FieldDescriptor) -> String {
    if let Some(name) = option(field, "hcl") {
        return if name == "-" { String::new() } else { name };
    }
    let name = field.name();
    let repeats_messages =
        matches!(field.kind(), Kind::Message(message) if field.is_list() || is_named(&message));
    if !repeats_messages {
        return without_unit(name).to_owned();
    }
    match (name.strip_suffix("ies"), name.strip_suffix('s')) {
        (Some(stem), _) => format!("{stem}y"),
        (None, Some(stem)) => stem.to_owned(),
        (None, None) => name.to_owned(),
    }
}

/// Reports whether a map's entry holds a message.
fn is_named(entry: &MessageDescriptor) -> bool {
    entry.is_map_entry() && matches!(entry.map_entry_value_field().kind(), Kind::Message(_))
}

fn option(field: &FieldDescriptor, name: &str) -> Option<String> {
    let extension = field
        .parent_pool()
        .get_extension_by_name(&format!("kafila.v1.{name}"))?;
    let options = field.options();
    if !options.has_extension(&extension) {
        return None;
    }
    match options.get_extension(&extension).into_owned() {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Returns a type's name as a static's, as in `TASK_GROUP`.
fn screaming(name: &str) -> String {
    let mut text = String::new();
    for (position, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && position > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}
