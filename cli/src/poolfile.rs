//! Node pool files: a block `node_pool "name" { … }`, or the API's JSON.

use std::collections::HashMap;
use std::path::Path;

use hcl_edit::expr::Expression;
use hcl_edit::structure::{Block, Body, Structure};
use proto::v1;
use serde::Deserialize;

use crate::error::Error;
use crate::jobfile::{is_json, name_of, text_of};

/// What `node pool init` writes.
pub(crate) const EXAMPLE_HCL: &str = r#"node_pool "example" {
  description = "Example node pool"

  # Whatever you want to keep with it.
  meta {
    environment = "production"
    owner       = "sre"
  }

  # What holds for the jobs of this pool instead of 'kafila operator scheduler get-config'; leave
  # out what shall be as in the rest of the cluster.
  scheduler_config {
    scheduler_algorithm             = "spread"
    memory_oversubscription_enabled = true
  }
}
"#;

/// The same as JSON.
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

/// How deep brackets may stand in each other: a pool's file needs three, and the parser of far
/// deeper ones runs out of stack.
pub(crate) const MAX_DEPTH: usize = 32;

/// Reads the pool that a file describes; `-` is standard input.
///
/// # Errors
/// It cannot be read, or describes no pool.
pub(crate) fn read(path: &Path, json: bool) -> Result<v1::NodePool, Error> {
    let name = name_of(path);
    let text = text_of(path)
        .map_err(|error| Error::text(format!("Error reading node pool file {name}: {error}")))?;
    let parsed = if json || is_json(&text) {
        from_json(&text)
    } else {
        from_hcl(&text)
    };
    parsed.map_err(|problem| Error::text(format!("Error parsing node pool file {name}: {problem}")))
}

/// The object of the HTTP API. What servers set is taken and ignored, so that what `info -json`
/// prints can be applied.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Pool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    meta: Option<HashMap<String, String>>,
    #[serde(default)]
    scheduler_configuration: Option<Scheduling>,
    #[serde(default, rename = "CreateIndex")]
    _create_index: u64,
    #[serde(default, rename = "ModifyIndex")]
    _modify_index: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Scheduling {
    #[serde(default)]
    scheduler_algorithm: String,
    #[serde(default)]
    memory_oversubscription_enabled: Option<bool>,
}

fn from_json(text: &str) -> Result<v1::NodePool, String> {
    let pool: Pool = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let scheduling = pool.scheduler_configuration;
    Ok(v1::NodePool {
        name: pool.name,
        description: pool.description,
        meta: pool.meta.unwrap_or_default(),
        scheduler_configuration: scheduling.map(|it| v1::NodePoolSchedulerConfiguration {
            scheduler_algorithm: it.scheduler_algorithm,
            memory_oversubscription_enabled: it.memory_oversubscription_enabled,
        }),
        ..v1::NodePool::default()
    })
}

fn from_hcl(text: &str) -> Result<v1::NodePool, String> {
    if depth(text) > MAX_DEPTH {
        return Err(format!("brackets stand more than {MAX_DEPTH} deep"));
    }
    let body = hcl_edit::parser::parse_body(text).map_err(|error| error.to_string())?;
    let reader = Reader { text };
    let mut pool = None;
    for item in &body {
        match item {
            Structure::Block(block) if block.ident.as_str() == "node_pool" && pool.is_none() => {
                pool = Some(reader.pool(block)?);
            }
            Structure::Block(block) if block.ident.as_str() == "node_pool" => {
                return Err(reader.at(block, "a second node_pool: want one a file"));
            }
            other => return Err(reader.stranger(other, "at the top", "a node_pool block")),
        }
    }
    pool.ok_or_else(|| "there is no node_pool block: want node_pool \"name\" { … }".to_owned())
}

pub(crate) fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Reads the items of a small file, and says where something is wrong.
pub(crate) struct Reader<'a> {
    pub(crate) text: &'a str,
}

impl Reader<'_> {
    fn pool(&self, block: &Block) -> Result<v1::NodePool, String> {
        let [label] = &block.labels[..] else {
            return Err(self.at(block, "want one name, as in node_pool \"gpu\""));
        };
        let mut pool = v1::NodePool {
            name: label.as_str().to_owned(),
            ..v1::NodePool::default()
        };
        for item in &block.body {
            match (item, name(item)) {
                (Structure::Attribute(it), "description") => {
                    pool.description = self.string(&it.value)?;
                }
                (Structure::Attribute(it), "meta") => pool.meta = self.object(&it.value)?,
                (Structure::Block(it), "meta") => pool.meta = self.words(&it.body)?,
                (Structure::Block(it), "scheduler_config") => {
                    pool.scheduler_configuration = Some(self.scheduling(&it.body)?);
                }
                _ => {
                    let known = "description, meta or scheduler_config";
                    return Err(self.stranger(item, "in a node_pool", known));
                }
            }
        }
        Ok(pool)
    }

    fn scheduling(&self, body: &Body) -> Result<v1::NodePoolSchedulerConfiguration, String> {
        let mut scheduling = v1::NodePoolSchedulerConfiguration::default();
        for item in body {
            match (item, name(item)) {
                (Structure::Attribute(it), "scheduler_algorithm") => {
                    scheduling.scheduler_algorithm = self.string(&it.value)?;
                }
                (Structure::Attribute(it), "memory_oversubscription_enabled") => {
                    let value = it.value.as_bool();
                    let value = value.ok_or_else(|| self.at(&it.value, "want true or false"))?;
                    scheduling.memory_oversubscription_enabled = Some(value);
                }
                _ => {
                    let known = "scheduler_algorithm or memory_oversubscription_enabled";
                    return Err(self.stranger(item, "in a scheduler_config", known));
                }
            }
        }
        Ok(scheduling)
    }

    /// Reads a block of names and texts.
    pub(crate) fn words(&self, body: &Body) -> Result<HashMap<String, String>, String> {
        let mut words = HashMap::new();
        for item in body {
            let Structure::Attribute(attribute) = item else {
                return Err(self.stranger(item, "in meta", "names with texts"));
            };
            words.insert(
                attribute.key.as_str().to_owned(),
                self.string(&attribute.value)?,
            );
        }
        Ok(words)
    }

    /// Reads the same as an object: `meta = { … }`.
    pub(crate) fn object(&self, value: &Expression) -> Result<HashMap<String, String>, String> {
        let object = value
            .as_object()
            .ok_or_else(|| self.at(value, "want an object, as in { owner = \"sre\" }"))?;
        let mut words = HashMap::new();
        for (key, value) in object {
            let key = match key {
                hcl_edit::expr::ObjectKey::Ident(ident) => ident.as_str().to_owned(),
                hcl_edit::expr::ObjectKey::Expression(key) => self.string(key)?,
            };
            words.insert(key, self.string(value.expr())?);
        }
        Ok(words)
    }

    /// Reads a text; numbers and truth values are texts as well, as in job files.
    pub(crate) fn string(&self, value: &Expression) -> Result<String, String> {
        match value {
            Expression::String(text) => Ok(text.as_str().to_owned()),
            Expression::Number(number) => Ok(number.to_string()),
            Expression::Bool(value) => Ok(value.to_string()),
            _ => Err(self.at(value, "want a text in quotes: nothing is computed here")),
        }
    }

    pub(crate) fn stranger(&self, item: &Structure, place: &str, known: &str) -> String {
        let problem = format!("{:?} is not expected {place}: want {known}", name(item));
        self.beside(item, &problem)
    }

    /// As [`Self::at`], of whatever an item is.
    pub(crate) fn beside(&self, item: &Structure, problem: &str) -> String {
        match item {
            Structure::Attribute(it) => self.at(it, problem),
            Structure::Block(it) => self.at(it, problem),
        }
    }

    /// Puts the line in front.
    pub(crate) fn at(&self, item: &impl hcl_edit::Span, problem: &str) -> String {
        let start = item.span().map_or(0, |span| span.start);
        let before = self.text.get(..start).unwrap_or_default();
        format!("line {}: {problem}", before.matches('\n').count() + 1)
    }
}

pub(crate) fn name(item: &Structure) -> &str {
    match item {
        Structure::Attribute(it) => it.key.as_str(),
        Structure::Block(it) => it.ident.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_init_writes_can_be_applied() {
        assert_eq!(from_hcl(EXAMPLE_HCL).unwrap(), example());
        assert_eq!(from_json(EXAMPLE_JSON).unwrap(), example());
    }

    #[test]
    fn what_is_left_out_is_not_set() {
        let plain = v1::NodePool {
            name: "gpu".to_owned(),
            ..v1::NodePool::default()
        };
        assert_eq!(from_hcl("node_pool \"gpu\" {}").unwrap(), plain);
        assert_eq!(from_json("{\"Name\": \"gpu\"}").unwrap(), plain);
        let meta = from_hcl("node_pool \"gpu\" {\n meta = { a = 1, \"b c\" = true }\n}").unwrap();
        assert_eq!(meta.meta["a"], "1");
        assert_eq!(meta.meta["b c"], "true");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let table = [
            ("", "there is no node_pool block"),
            ("job \"x\" {}", "line 1: \"job\" is not expected at the top"),
            ("node_pool {}", "line 1: want one name"),
            (
                "node_pool \"a\" {}\nnode_pool \"b\" {}",
                "line 2: a second node_pool",
            ),
            (
                "node_pool \"a\" {\n  descripton = \"x\"\n}",
                "line 2: \"descripton\" is not expected in a node_pool: want description, meta",
            ),
            (
                "node_pool \"a\" {\n  scheduler_config {\n    algorithm = \"x\"\n  }\n}",
                "line 3: \"algorithm\" is not expected in a scheduler_config",
            ),
            (
                "node_pool \"a\" {\n  scheduler_config {\n    memory_oversubscription_enabled = 7\n  }\n}",
                "line 3: want true or false",
            ),
            (
                "node_pool \"a\" {\n  description = upper(\"x\")\n}",
                "line 2: want a text",
            ),
            ("node_pool \"a\" {\n  meta = 3\n}", "line 2: want an object"),
            ("node_pool \"a\" {", "1"),
        ];
        for (text, expected) in table {
            let problem = from_hcl(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
        let deep = format!("a = {}", "[".repeat(100_000));
        assert!(from_hcl(&deep).unwrap_err().contains("more than 32 deep"));
        let problem = from_json("{\"Name\": \"a\", \"Descripton\": \"x\"}").unwrap_err();
        assert!(problem.contains("unknown field `Descripton`"), "{problem}");
    }
}
