//! `-print-config`: a service's configuration as a commented TOML file.
//!
//! The comments are the doc comments of the config structs, whose source is part of the binary. So
//! programmers and operators read the same text.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

/// A config struct with comments for its reader.
pub trait Documented: Serialize {
    /// The source that defines it, as `pub struct Config`, and the structs of its sections.
    const SOURCE: &'static str;
    /// Sources of sections that other crates define.
    const SECTION_SOURCES: &'static [&'static str] = &[];
    /// A source with further fields of `Config`, those of other services included; may be empty.
    const SHARED: &'static str = "";
}

/// The sections that services share.
const SECTIONS: &str = include_str!("settings.rs");

/// Returns `config` as TOML with comments.
pub fn toml<T: Documented>(config: &T) -> String {
    let mut out = String::new();
    walk(config, &mut |item: ConfigItem<'_>| match item {
        ConfigItem::Section { path, docs } => {
            let _ = write!(out, "\n{}[{path}]\n", comment(docs));
        }
        ConfigItem::Key { name, docs, value } => {
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
    walk(config, &mut |item: ConfigItem<'_>| match item {
        ConfigItem::Key { name, docs: [], .. } => keys.push(name.to_owned()),
        ConfigItem::Section { path, docs: [] } => keys.push(path.to_owned()),
        ConfigItem::Key { .. } | ConfigItem::Section { .. } => {}
    });
    keys
}

/// A part of a configuration.
enum ConfigItem<'a> {
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

fn walk<T: Documented>(config: &T, visit: &mut impl FnMut(ConfigItem<'_>)) {
    let Ok(Value::Object(table)) = serde_json::to_value(config) else {
        return;
    };
    let shared = definitions(T::SHARED, "Config").flat_map(|definition| definition.fields);
    let own = definitions(T::SOURCE, "Config").flat_map(|definition| definition.fields);
    let fields: Vec<Field<'_>> = shared
        .filter(|field| table.contains_key(field.name))
        .chain(own)
        .collect();
    let mut sources = vec![T::SOURCE, SECTIONS];
    sources.extend(T::SECTION_SOURCES);
    walk_fields(&sources, &fields, "", &table, visit);
}

/// Visits the keys of a struct in the order of its source, then its sections.
fn walk_fields(
    sources: &[&str],
    fields: &[Field<'_>],
    path: &str,
    table: &Map<String, Value>,
    visit: &mut impl FnMut(ConfigItem<'_>),
) {
    let section = |field: &Field<'_>| {
        let mut sources = sources.iter();
        sources.find_map(|source| definitions(source, field.kind).next())
    };
    for field in fields {
        let value = table.get(field.name).unwrap_or(&Value::Null);
        if section(field).is_none() {
            visit(ConfigItem::Key {
                name: field.name,
                docs: &field.docs,
                value,
            });
        }
    }
    for field in fields {
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
        visit(ConfigItem::Section { path: &path, docs });
        walk_fields(sources, &section.fields, &path, table, visit);
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

/// Returns the definitions of a struct in a formatted source. A macro may declare it in several parts.
fn definitions<'a>(source: &'a str, name: &str) -> impl Iterator<Item = Definition<'a>> {
    let opening = format!("pub struct {name} {{");
    let mut lines = source.lines();
    std::iter::from_fn(move || next_definition(&mut lines, &opening))
}

fn next_definition<'a>(lines: &mut std::str::Lines<'a>, opening: &str) -> Option<Definition<'a>> {
    let mut docs = Vec::new();
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
    for line in lines
        .by_ref()
        .map(str::trim)
        .take_while(|line| *line != "}")
    {
        if let Some(text) = line.strip_prefix("///") {
            field_docs.push(text.trim());
        } else if let Some((name, kind)) = line
            .strip_prefix("pub ")
            .and_then(|line| line.split_once(':'))
        {
            // In a macro, a field may have a default.
            let kind = kind.split_once(" = ").map_or(kind, |(kind, _)| kind);
            let kind = kind.trim().trim_end_matches(',');
            fields.push(Field {
                name,
                kind: kind.rsplit("::").next().unwrap_or(kind),
                docs: std::mem::take(&mut field_docs),
            });
        }
    }
    Some(Definition { docs, fields })
}

fn comment(docs: &[&str]) -> String {
    docs.iter().map(|line| format!("# {line}\n")).collect()
}

/// Returns a value on one line. JSON's texts and numbers are TOML's too.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let entries: Vec<String> = table
                .iter()
                // TOML has no null.
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| format!("{} = {}", Value::from(key.as_str()), inline(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(inline).collect();
            format!("[{}]", elements.join(", "))
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
    fn values_on_one_line_are_tomls() {
        let value = serde_json::json!({
            "public": {"cidr": "10.0.0.0/8", "interface": null},
            "devices": [{"name": "t4", "ids": ["a", "b"]}],
        });
        let expected = "{\"devices\" = [{\"ids\" = [\"a\", \"b\"], \"name\" = \"t4\"}], \
                        \"public\" = {\"cidr\" = \"10.0.0.0/8\"}}";
        assert_eq!(inline(&value), expected);
        format!("key = {expected}")
            .parse::<::toml::Table>()
            .unwrap();
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

# Connection to etcd.
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
