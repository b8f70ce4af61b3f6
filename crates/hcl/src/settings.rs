//! Files without variables and locals, such as node pools, namespaces and volumes.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::collector::Collector;
use crate::document::Content;
use crate::expand::Expander;
use crate::file::{label_count, only_root, report_unexpected};
use crate::inputs::Files;
use crate::language::eval::{Host, UnknownNames};
use crate::language::{Scope, syntax};
use crate::places::Places;
use crate::report::ParseErrors;
use crate::schema::Schema;
use crate::source::Fault;

/// The layout of a file's top level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The attributes and blocks of the schema.
    Body,
    /// One block of the schema.
    Block,
}

/// The content of a file.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The values, under the `json` keys of the schema.
    pub object: Map<String, Value>,
    pub warnings: Vec<String>,
    pub places: Places,
}

/// Reads an HCL file of at most `max_bytes`; `file` is its name in messages.
///
/// # Errors
/// Everything wrong with the text, each with its place; of a syntax error only the first.
pub fn read(
    (file, text): (&str, &str),
    max_bytes: usize,
    (root, layout): (&'static Schema, Layout),
    files: Option<Arc<dyn Files>>,
) -> Result<Settings, ParseErrors> {
    let mut out = Collector::open(file, text, max_bytes)?;
    let host = Host {
        files,
        unknown_names: UnknownNames::Refuse,
        ..Host::default()
    };
    let source = Arc::clone(&out.source);
    let expander = Expander {
        root,
        text: &source.text,
        host: &host,
    };
    let object = match syntax::body(&source.text) {
        Ok(body) => top_level(&expander, Content::Hcl(&body), layout, &mut out),
        Err(fault) => Err(fault),
    };
    let object = object.unwrap_or_else(|fault| {
        out.fault(fault);
        Map::new()
    });
    if out.has_errors() {
        return Err(out.into_errors());
    }
    let (warnings, places) = out.into_places();
    Ok(Settings {
        object,
        warnings,
        places,
    })
}

/// Returns the text of an attribute at the top level of an HCL file, by which the schema of the file is
/// chosen; `None`: there is none, its value is no text, or the file cannot be read, which [`read`] reports.
pub fn text_attribute(text: &str, max_bytes: usize, name: &str) -> Option<String> {
    if text.len() > max_bytes {
        return None;
    }
    let body = syntax::body(text).ok()?;
    let items = Content::Hcl(&body).items(&|_| None).ok()?;
    let found = items.attributes.iter().find(|known| known.name == name)?;
    let host = Host {
        unknown_names: UnknownNames::Refuse,
        ..Host::default()
    };
    match found.expr.eval(text, &host, &Scope::default()).ok()? {
        Value::String(value) => Some(value),
        _ => None,
    }
}

fn top_level(
    expander: &Expander<'_>,
    content: Content<'_>,
    layout: Layout,
    out: &mut Collector,
) -> Result<Map<String, Value>, Fault> {
    let root = expander.root;
    let scope = Scope::default();
    if layout == Layout::Body {
        return Ok(expander.body(content, &scope, out));
    }
    let mut items = content.items(&|kind| label_count(root, kind))?;
    report_unexpected(&items, root, &[root.name], out);
    items.blocks.retain(|block| block.kind == root.name);
    let object = only_root(&items.blocks, root, out)
        .map(|block| expander.block(block, root, "", &scope, out));
    Ok(object.unwrap_or_default())
}
