//! The JSON of the HTTP API: `{"Job": {…}}` or the job alone, with keys such as `TaskGroups`.
//!
//! Keys match whatever their case, unknown ones are ignored with one warning that lists them, durations
//! are integer nanoseconds. Fields that this version does not support are refused unless they are
//! empty, because Nomad writes every field of a job, empty ones too.

use hcl::collector::Collector;
use hcl::json::{Json, Key, Node, plain};
use hcl::schema::{Attribute, Child, Form, Kind, Refused, Repeat, Schema};
use hcl::source::Fault;
use serde_json::{Map, Value};
use suggest::nearest;

use crate::schema::JOB;

/// Maximum number of unknown keys in the warning: it stays readable, and locating a key is slow in long lines.
const MAX_UNKNOWN: usize = 20;

/// Keys of Nomad's API that have no meaning here, by the block that has them. Nomad sets them itself, so a job
/// that it exports has them.
const KEYS_OF_NOMAD: [(&str, &str); 6] = [
    ("job", "ConsulNamespace"),
    ("job", "NomadTokenID"),
    ("job", "StatusDescription"),
    ("job", "VaultNamespace"),
    ("scaling", "Namespace"),
    ("service", "Namespace"),
];

/// Errors, and the keys that are ignored.
struct Output<'a> {
    collector: &'a mut Collector,
    /// The first unknown keys, each with its line and a suggestion.
    unknown: Vec<String>,
    /// Number of further unknown keys.
    more: usize,
}

impl Output<'_> {
    /// Warns about the unknown keys.
    fn finish(self) {
        if self.unknown.is_empty() {
            return;
        }
        let mut warning = format!("unknown keys are ignored: {}", self.unknown.join(", "));
        if self.more > 0 {
            warning += &format!(" and {} more", self.more);
        }
        self.collector.warn(warning);
    }
}

/// Returns the job with the API's own spelling of every key; errors go to `out`.
pub(crate) fn job(json: &Json, out: &mut Collector) -> Map<String, Value> {
    let wrapped = entries(json).and_then(|entries| {
        let job = entries
            .iter()
            .find(|(key, _)| key.name.eq_ignore_ascii_case("job"));
        job.map(|(_, job)| job)
    });
    let job = wrapped.unwrap_or(json);
    out.place("", job.range.start..job.range.start + 1);
    let mut output = Output {
        collector: out,
        unknown: Vec::new(),
        more: 0,
    };
    let map = object(job, &JOB, "", &mut output);
    output.finish();
    map
}

fn entries(json: &Json) -> Option<&[(Key, Json)]> {
    match &json.node {
        Node::Object(entries) => Some(entries),
        _ => None,
    }
}

fn object(
    json: &Json,
    schema: &'static Schema,
    path: &str,
    out: &mut Output<'_>,
) -> Map<String, Value> {
    let mut map = Map::new();
    let Some(entries) = entries(json) else {
        let detail = format!("a {} is a JSON object, as in {{\"Name\": …}}", schema.name);
        out.collector.fault(Fault::new(
            json.range.clone(),
            "Failed to parse JSON job",
            detail,
        ));
        return map;
    };
    for (key, value) in entries {
        entry(key, value, schema, path, &mut map, out);
    }
    map
}

fn entry(
    key: &Key,
    value: &Json,
    schema: &'static Schema,
    path: &str,
    map: &mut Map<String, Value>,
    out: &mut Output<'_>,
) {
    let is = |json: &str| json.eq_ignore_ascii_case(&key.name);
    if let Some(label) = schema.label.as_ref().filter(|label| is(label.json)) {
        let text = convert(Kind::Text, value);
        insert(map, label.json, text, out.collector);
        out.collector
            .place(&join(path, "name"), value.range.clone());
    } else if let Some(attribute) = schema.attributes.iter().find(|known| is(known.json)) {
        let name = if attribute.name.is_empty() {
            attribute.json
        } else {
            attribute.name
        };
        out.collector.place(&join(path, name), value.range.clone());
        insert(
            map,
            attribute.json,
            convert_named(attribute, value),
            out.collector,
        );
    } else if let Some(child) = schema
        .blocks
        .iter()
        .find(|child| child.form != Form::Hcl && is(child.json))
    {
        block(child, value, path, map, out);
    } else if let Some(refused) = schema.refused.iter().find(|known| is(known.json)) {
        refuse(refused, key, value, out.collector);
    } else if let Some(ignored) = schema.ignored.iter().find(|known| is(known.json)) {
        if !is_empty(value) {
            out.collector.warn(ignored.warning);
        }
    } else {
        unknown(key, value, schema, out);
    }
}

fn block(
    child: &'static Child,
    value: &Json,
    path: &str,
    map: &mut Map<String, Value>,
    out: &mut Output<'_>,
) {
    let name = child.schema.name;
    match (&value.node, child.repeat) {
        (Node::Null, _) => {}
        (_, Repeat::Once) => {
            let path = join(path, name);
            out.collector
                .place(&path, value.range.start..value.range.start + 1);
            map.insert(
                child.json.to_owned(),
                Value::Object(object(value, child.schema, &path, out)),
            );
        }
        (Node::List(items), Repeat::Many) => {
            let mut objects = Vec::with_capacity(items.len());
            for (position, item) in items.iter().enumerate() {
                let path = item_path(child, item, position, path);
                out.collector
                    .place(&path, item.range.start..item.range.start + 1);
                objects.push(Value::Object(object(item, child.schema, &path, out)));
            }
            map.insert(child.json.to_owned(), Value::Array(objects));
        }
        (Node::Object(items), Repeat::Named) => {
            let mut objects = Map::new();
            for (key, item) in items {
                let path = format!("{}[{:?}]", join(path, name), key.name);
                out.collector
                    .place(&path, item.range.start..item.range.start + 1);
                let object = object(item, child.schema, &path, out);
                objects.insert(key.name.clone(), Value::Object(object));
            }
            map.insert(child.json.to_owned(), Value::Object(objects));
        }
        (_, Repeat::Named) => {
            let detail = format!(
                "{} is an object by name: write {{\"…\": {{…}}}}",
                child.json
            );
            out.collector.fault(Fault::new(
                value.range.clone(),
                "Failed to parse JSON job",
                detail,
            ));
        }
        (_, Repeat::Many) => {
            let detail = format!("{} is a list of objects: write [{{…}}]", child.json);
            out.collector.fault(Fault::new(
                value.range.clone(),
                "Failed to parse JSON job",
                detail,
            ));
        }
    }
}

/// Returns the path of one item of a list: by its label, where it has one.
fn item_path(child: &Child, item: &Json, position: usize, path: &str) -> String {
    let label = child.schema.label.as_ref().and_then(|label| {
        let found = entries(item)?
            .iter()
            .find(|(key, _)| key.name.eq_ignore_ascii_case(label.json));
        match &found?.1.node {
            Node::Text(text) => Some(text),
            _ => None,
        }
    });
    match label {
        Some(label) => format!("{}[{label:?}]", join(path, child.schema.name)),
        None => format!("{}[{position}]", join(path, child.schema.name)),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn insert(
    map: &mut Map<String, Value>,
    key: &str,
    value: Result<Option<Value>, Fault>,
    out: &mut Collector,
) {
    match value {
        Ok(Some(value)) => drop(map.insert(key.to_owned(), value)),
        Ok(None) => {}
        Err(fault) => out.fault(fault),
    }
}

fn convert_named(attribute: &Attribute, json: &Json) -> Result<Option<Value>, Fault> {
    convert(attribute.kind, json).map_err(|mut fault| {
        fault.detail = format!("{}: {}", attribute.json, fault.detail);
        fault
    })
}

/// Returns the value if it has the right type; `None` for null.
fn convert(kind: Kind, json: &Json) -> Result<Option<Value>, Fault> {
    let wrong = |detail: String| {
        Err(Fault::new(
            json.range.clone(),
            "Failed to parse JSON job",
            detail,
        ))
    };
    let wanted = match (kind, &json.node) {
        (_, Node::Null) => return Ok(None),
        (Kind::Text, Node::Text(_)) | (Kind::Flag, Node::Bool(_)) => "",
        (Kind::Whole | Kind::Duration, Node::Number(number)) if number.is_i64() => "",
        (Kind::Duration, Node::Text(text)) => {
            let nanoseconds = duration::parse_nanoseconds(text);
            let hint = nanoseconds
                .map(|ns| format!(", {ns} for {text:?}"))
                .unwrap_or_default();
            return wrong(format!(
                "durations are integer nanoseconds in JSON job files: write a number{hint}",
            ));
        }
        (Kind::TextList, Node::List(items)) if items.iter().all(is_text) => "",
        (Kind::TextMap, Node::Object(entries)) if entries.iter().all(|(_, v)| is_text(v)) => "",
        (Kind::Config, Node::Object(_)) => "",
        (Kind::Text, _) => "a string",
        (Kind::Flag, _) => "true or false",
        (Kind::Whole, _) => "an integer",
        (Kind::Duration, _) => "integer nanoseconds",
        (Kind::TextList, _) => "a list of strings",
        (Kind::TextMap, _) => "an object with string values",
        (Kind::Config, _) => "an object",
    };
    if wanted.is_empty() {
        Ok(Some(plain(json)))
    } else {
        wrong(format!("want {wanted} here"))
    }
}

fn is_text(json: &Json) -> bool {
    matches!(json.node, Node::Text(_))
}

fn refuse(refused: &Refused, key: &Key, value: &Json, out: &mut Collector) {
    if is_empty(value) {
        return;
    }
    let detail = format!(
        "{:?} is not supported by this version of Kafila: {}",
        key.name, refused.instead,
    );
    out.fault(Fault::new(key.range.clone(), "Not supported", detail));
}

/// Tells whether the value says nothing: null, false, 0, "" or made of such values.
fn is_empty(json: &Json) -> bool {
    match &json.node {
        Node::Null | Node::Bool(false) => true,
        Node::Bool(true) => false,
        Node::Number(number) => number.as_f64() == Some(0.0),
        Node::Text(text) => text.is_empty(),
        Node::List(items) => items.is_empty(),
        Node::Object(entries) => entries.iter().all(|(_, value)| is_empty(value)),
    }
}

/// Notes an unknown key, unless it says nothing or is Nomad's.
fn unknown(key: &Key, value: &Json, schema: &'static Schema, out: &mut Output<'_>) {
    let is = |(block, json): &(&str, &str)| {
        *block == schema.name && json.eq_ignore_ascii_case(&key.name)
    };
    if KEYS_OF_NOMAD.iter().any(is) {
        return;
    }
    if out.unknown.len() == MAX_UNKNOWN {
        out.more += usize::from(!is_empty(value));
        return;
    }
    let meant = near_miss(key, schema);
    // Nomad writes every field of a job: an empty one of another version is no mistake.
    if meant.is_none() && is_empty(value) {
        return;
    }
    let (line, _) = out.collector.source.position(key.range.start);
    let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
    out.unknown
        .push(format!("{:?} (line {line}{hint})", key.name));
}

fn near_miss(key: &Key, schema: &'static Schema) -> Option<&'static str> {
    // Short words are close to each other.
    if key.name.len() <= 3 {
        return None;
    }
    let blocks = schema.blocks.iter().filter(|child| child.form != Form::Hcl);
    let known = schema.attributes.iter().map(|attribute| attribute.json);
    nearest(&key.name, known.chain(blocks.map(|child| child.json)))
}
