//! A service's configuration as a TOML file that explains itself: every key with its value, under
//! what its field's doc comment says.
//!
//! The comments come from the source of the config structs, which is part of the binary: one place
//! to write them, for programmers and operators.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

/// A config struct that can be explained.
pub trait Documented: Serialize {
    /// The source that defines it, as `struct Config`, and the structs of its sections.
    const SOURCE: &'static str;
}

/// The sections that services share.
const SHARED: &str = include_str!("settings.rs");

/// Returns `config` as TOML with comments.
pub fn toml<T: Documented>(config: &T) -> String {
    let mut out = String::new();
    walk(config, &mut |place: Place<'_>| match place {
        Place::Section { path, docs } => {
            let _ = write!(out, "\n{}[{path}]\n", comment(docs));
        }
        Place::Key { name, docs, value } => {
            let _ = write!(out, "{}", comment(docs));
            let _ = match value {
                Value::Null => writeln!(out, "# {name} = … is not set"),
                value => writeln!(out, "{name} = {}", inline(value)),
            };
        }
    });
    out
}

/// Returns the keys that no comment explains.
pub fn undocumented<T: Documented>(config: &T) -> Vec<String> {
    let mut keys = Vec::new();
    walk(config, &mut |place: Place<'_>| match place {
        Place::Key { name, docs: [], .. } => keys.push(name.to_owned()),
        Place::Section { path, docs: [] } => keys.push(path.to_owned()),
        Place::Key { .. } | Place::Section { .. } => {}
    });
    keys
}

/// What is met on the way through a configuration.
enum Place<'a> {
    Section {
        path: &'a str,
        docs: &'a [&'a str],
    },
    Key {
        name: &'a str,
        docs: &'a [&'a str],
        value: &'a Value,
    },
}

fn walk<T: Documented>(config: &T, visit: &mut impl FnMut(Place<'_>)) {
    let Ok(Value::Object(table)) = serde_json::to_value(config) else {
        return;
    };
    let sources = [T::SOURCE, SHARED];
    walk_table(&sources, "Config", "", &table, visit);
}

/// Visits the keys of a struct in the order of its source, then its sections.
fn walk_table(
    sources: &[&str],
    name: &str,
    path: &str,
    table: &Map<String, Value>,
    visit: &mut impl FnMut(Place<'_>),
) {
    let Some(definition) = sources.iter().find_map(|source| definition(source, name)) else {
        return;
    };
    let section = |field: &Field<'_>| {
        sources
            .iter()
            .find_map(|source| self::definition(source, field.kind))
    };
    for field in &definition.fields {
        let value = table.get(field.name).unwrap_or(&Value::Null);
        if section(field).is_none() {
            visit(Place::Key {
                name: field.name,
                docs: &field.docs,
                value,
            });
        }
    }
    for field in &definition.fields {
        let (Some(section), Some(Value::Object(table))) = (section(field), table.get(field.name))
        else {
            continue;
        };
        let path = match path {
            "" => field.name.to_owned(),
            path => format!("{path}.{}", field.name),
        };
        let docs = if field.docs.is_empty() {
            &section.docs
        } else {
            &field.docs
        };
        visit(Place::Section { path: &path, docs });
        walk_table(sources, field.kind, &path, table, visit);
    }
}

/// A struct as its source has it.
struct Definition<'a> {
    docs: Vec<&'a str>,
    fields: Vec<Field<'a>>,
}

struct Field<'a> {
    name: &'a str,
    kind: &'a str,
    docs: Vec<&'a str>,
}

/// Finds a struct in a source that rustfmt has been over.
fn definition<'a>(source: &'a str, name: &str) -> Option<Definition<'a>> {
    let opening = format!("pub struct {name} {{");
    let mut docs = Vec::new();
    let mut lines = source.lines();
    loop {
        let line = lines.next()?.trim();
        if line == opening {
            break;
        }
        match line.strip_prefix("///") {
            Some(text) => docs.push(text.trim()),
            None if line.starts_with("#[") => {}
            None => docs.clear(),
        }
    }
    let mut fields = Vec::new();
    let mut field_docs = Vec::new();
    for line in lines.map(str::trim).take_while(|line| *line != "}") {
        if let Some(text) = line.strip_prefix("///") {
            field_docs.push(text.trim());
        } else if let Some((name, kind)) = line
            .strip_prefix("pub ")
            .and_then(|line| line.split_once(':'))
        {
            fields.push(Field {
                name,
                kind: kind.trim().trim_end_matches(','),
                docs: std::mem::take(&mut field_docs),
            });
        }
    }
    Some(Definition { docs, fields })
}

fn comment(docs: &[&str]) -> String {
    docs.iter().map(|line| format!("# {line}\n")).collect()
}

/// Returns a value on one line. JSON's texts, numbers and lists are TOML's too.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let entries: Vec<String> = table
                .iter()
                .map(|(key, value)| format!("{} = {}", Value::from(key.as_str()), inline(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::settings::EtcdConfig;

    #[derive(Default, Serialize)]
    struct Config {
        etcd: EtcdConfig,
        name: Option<String>,
        count: u8,
        meta: BTreeMap<String, String>,
        forgotten: bool,
    }

    impl Documented for Config {
        const SOURCE: &'static str = "\
pub struct Config {
    pub etcd: EtcdConfig,
    /// The name,
    /// for people.
    pub name: Option<String>,
    /// How many.
    #[serde(with = \"x\")]
    pub count: u8,
    /// Own words.
    pub meta: BTreeMap<String, String>,
    pub forgotten: bool,
}
";
    }

    #[test]
    fn every_key_is_printed_under_its_comment() {
        let mut config = Config::default();
        config.meta.insert("rack".to_owned(), "a \"1\"".to_owned());
        let text = toml(&config);
        let expected = "\
# The name,
# for people.
# name = … is not set
# How many.
count = 0
# Own words.
meta = {\"rack\" = \"a \\\"1\\\"\"}
forgotten = false

# Where the store is.
[etcd]
";
        assert!(text.starts_with(expected), "{text}");
        assert!(
            text.contains("\nendpoints = [\"http://127.0.0.1:2379\"]\n"),
            "{text}"
        );
        assert_eq!(undocumented(&config), ["forgotten"]);
        text.parse::<::toml::Table>().unwrap();
    }
}
