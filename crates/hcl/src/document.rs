//! A file as blocks and attributes, in HCL or in HCL's JSON syntax.
//!
//! JSON does not distinguish blocks from attributes, so the reader passes the known block types.

pub mod json;

use std::ops::Range;

use hcl_edit::Span;
use hcl_edit::expr::Expression;
use hcl_edit::structure::{Body, Structure};

use self::json::{Json, Node};
use crate::language::references::{self, Reference};
use crate::language::{Evaluator, Scope, Value, eval::Host, syntax};
use crate::source::Fault;

/// The content of a block.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    Hcl(&'a Body),
    /// An object.
    Json(&'a Json),
}

/// The expression of an attribute.
#[derive(Clone, Copy)]
pub(crate) enum Expr<'a> {
    Hcl(&'a Expression),
    Json(&'a Json),
}

pub(crate) struct Attribute<'a> {
    pub(crate) name: &'a str,
    pub(crate) name_range: Range<usize>,
    pub(crate) expr: Expr<'a>,
}

pub(crate) struct Block<'a> {
    pub(crate) kind: &'a str,
    pub(crate) labels: Vec<(String, Range<usize>)>,
    /// The kind and its labels.
    pub(crate) header: Range<usize>,
    pub(crate) content: Content<'a>,
}

#[derive(Default)]
pub(crate) struct Items<'a> {
    pub(crate) attributes: Vec<Attribute<'a>>,
    pub(crate) blocks: Vec<Block<'a>>,
}

impl<'a> Content<'a> {
    /// Returns the attributes and blocks. For JSON, `labels_of` returns the number of labels of a block
    /// type, and `None` for attributes.
    pub(crate) fn items(
        &self,
        labels_of: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<Items<'a>, Fault> {
        match self {
            Self::Hcl(body) => Ok(hcl_items(body)),
            Self::Json(json) => json_items(json, labels_of),
        }
    }
}

impl<'a> Expr<'a> {
    pub(crate) fn range(&self) -> Range<usize> {
        match self {
            Self::Hcl(expression) => expression.span().unwrap_or(0..0),
            Self::Json(json) => json.range.clone(),
        }
    }

    /// Returns the value; `text` is the file with the expression.
    pub(crate) fn eval(&self, text: &str, host: &Host, scope: &Scope<'_>) -> Result<Value, Fault> {
        match self {
            Self::Hcl(expression) => Evaluator::new(text, host).eval(expression, scope),
            Self::Json(json) => json_value(json, host, scope),
        }
    }

    /// Returns all references to variables, locals and functions.
    pub(crate) fn references(&self) -> Vec<Reference> {
        match self {
            Self::Hcl(expression) => references::of_expression(expression),
            Self::Json(json) => json_references(json),
        }
    }

    /// Returns the syntax tree of an expression that is not evaluated, such as a type. In JSON it is a
    /// string.
    pub(crate) fn syntax(&self) -> Result<Expression, Fault> {
        match self {
            Self::Hcl(expression) => Ok((*expression).clone()),
            Self::Json(Json {
                node: Node::Text(text),
                range,
            }) => syntax::expression(text).map_err(|fault| fault.at(range.clone())),
            Self::Json(json) => {
                let detail = "a string that holds an expression is required here";
                Err(Fault::new(json.range.clone(), "Invalid expression", detail))
            }
        }
    }
}

fn hcl_items(body: &Body) -> Items<'_> {
    let mut items = Items::default();
    for structure in body {
        match structure {
            Structure::Attribute(attribute) => items.attributes.push(Attribute {
                name: attribute.key.as_str(),
                name_range: attribute.key.span().unwrap_or(0..0),
                expr: Expr::Hcl(&attribute.value),
            }),
            Structure::Block(block) => {
                let kind_range = block.ident.span().unwrap_or(0..0);
                let labels: Vec<_> = block
                    .labels
                    .iter()
                    .map(|label| (label.as_str().to_owned(), label.span().unwrap_or(0..0)))
                    .collect();
                let end = labels.last().map_or(kind_range.end, |(_, range)| range.end);
                items.blocks.push(Block {
                    kind: block.ident.as_str(),
                    header: kind_range.start..end,
                    labels,
                    content: Content::Hcl(&block.body),
                });
            }
        }
    }
    items
}

fn json_items<'a>(
    json: &'a Json,
    labels_of: &dyn Fn(&str) -> Option<usize>,
) -> Result<Items<'a>, Fault> {
    let Node::Object(entries) = &json.node else {
        let detail = "a JSON object is required here, as in {\"name\": …}";
        return Err(Fault::new(
            json.range.clone(),
            "Incorrect JSON value type",
            detail,
        ));
    };
    let mut items = Items::default();
    for (key, value) in entries {
        // Source: HCL's JSON syntax, where this key is a comment.
        if key.name == "//" {
            continue;
        }
        match labels_of(&key.name) {
            Some(count) => {
                let mut labels = Vec::new();
                let header = key.range.clone();
                json_blocks(&key.name, &header, value, count, &mut labels, &mut items)?;
            }
            None => items.attributes.push(Attribute {
                name: &key.name,
                name_range: key.range.clone(),
                expr: Expr::Json(value),
            }),
        }
    }
    Ok(items)
}

/// Unfolds `{"group": {"web": {…}}}`: an object per label, and lists where blocks repeat.
fn json_blocks<'a>(
    kind: &'a str,
    header: &Range<usize>,
    value: &'a Json,
    labels_left: usize,
    labels: &mut Vec<(String, Range<usize>)>,
    items: &mut Items<'a>,
) -> Result<(), Fault> {
    match &value.node {
        Node::List(list) => {
            for item in list {
                json_blocks(kind, header, item, labels_left, labels, items)?;
            }
        }
        Node::Object(entries) if labels_left > 0 => {
            for (key, inner) in entries {
                labels.push((key.name.clone(), key.range.clone()));
                json_blocks(kind, header, inner, labels_left - 1, labels, items)?;
                labels.pop();
            }
        }
        Node::Object(_) => {
            let place = labels.last().map_or(header, |(_, range)| range).clone();
            items.blocks.push(Block {
                kind,
                labels: labels.clone(),
                header: place,
                content: Content::Json(value),
            });
        }
        Node::Null => {}
        _ => {
            let detail = format!("a {kind} block is a JSON object, as in {{\"name\": …}}");
            return Err(Fault::new(
                value.range.clone(),
                "Incorrect JSON value type",
                detail,
            ));
        }
    }
    Ok(())
}

/// Returns the value of JSON, in which every string is a template.
fn json_value(json: &Json, host: &Host, scope: &Scope<'_>) -> Result<Value, Fault> {
    let here = |fault: Fault| fault.at(json.range.clone());
    host.meter
        .step()
        .map_err(|detail| here(Fault::new(0..0, "Evaluation too large", detail)))?;
    match &json.node {
        Node::Text(text) if text.contains("${") || text.contains("%{") => {
            let template = syntax::template(text).map_err(here)?;
            Evaluator::new(text, host)
                .whole_template(&template, scope)
                .map_err(here)
        }
        Node::List(items) => items
            .iter()
            .map(|item| json_value(item, host, scope))
            .collect(),
        Node::Object(entries) => {
            let mut map = serde_json::Map::new();
            for (key, value) in entries {
                map.insert(key.name.clone(), json_value(value, host, scope)?);
            }
            Ok(Value::Object(map))
        }
        _ => Ok(json::plain(json)),
    }
}

fn json_references(json: &Json) -> Vec<Reference> {
    match &json.node {
        Node::Text(text) => {
            // Invalid templates are reported by their evaluation.
            let found = syntax::template(text).map(|template| references::of_template(&template));
            let mut found = found.unwrap_or_default();
            for reference in &mut found {
                reference.range = json.range.clone();
            }
            found
        }
        Node::List(items) => items.iter().flat_map(json_references).collect(),
        Node::Object(entries) => entries
            .iter()
            .flat_map(|(_, value)| json_references(value))
            .collect(),
        _ => Vec::new(),
    }
}
