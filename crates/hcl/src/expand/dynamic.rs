//! `dynamic "port" { for_each = … content { … } }`: one block per element.

use std::ops::Range;

use hcl_edit::expr::Expression;
use serde_json::{Map, Value};

use super::expander::Expander;
use crate::collector::Collector;
use crate::document::{Block, Content, Expr, Items};
use crate::language::Scope;
use crate::language::value::{elements, runtime_hint, to_text};
use crate::source::Fault;
use suggest::hint;

/// Receives each expanded block with its scope.
type Sink<'s> = &'s mut dyn FnMut(&Block<'_>, &Scope<'_>, &mut Collector);

/// Memory charged per expanded block. Limits a job to some ten thousand blocks.
const BLOCK_BYTES: usize = 1_024;

const ATTRIBUTES: [&str; 3] = ["for_each", "iterator", "labels"];

/// The parts of a dynamic block.
struct Dynamic<'a> {
    kind: &'a str,
    for_each: Expr<'a>,
    iterator: String,
    labels: Option<Expr<'a>>,
    content: Content<'a>,
}

impl Expander<'_> {
    /// Passes each expanded block to `sink`.
    pub(super) fn dynamic(
        &self,
        block: &Block<'_>,
        scope: &Scope<'_>,
        out: &mut Collector,
        sink: Sink<'_>,
    ) {
        if let Err(fault) = self.unfold(block, scope, out, sink) {
            out.fault(fault);
        }
    }

    fn unfold(
        &self,
        block: &Block<'_>,
        scope: &Scope<'_>,
        out: &mut Collector,
        sink: Sink<'_>,
    ) -> Result<(), Fault> {
        let items = block
            .content
            .items(&|kind| (kind == "content").then_some(0))?;
        let dynamic = read(block, &items)?;
        let elements = self.elements(&dynamic, scope)?;
        for (key, value) in elements {
            let paid = self.host.meter.grow(BLOCK_BYTES);
            paid.map_err(|detail| {
                Fault::new(block.header.clone(), "Evaluation too large", detail)
            })?;
            let pair = [("key".to_owned(), key), ("value".to_owned(), value)];
            let element = Value::Object(Map::from_iter(pair));
            let names = [(dynamic.iterator.as_str(), &element)];
            let scope = scope.child(&names);
            let expanded = Block {
                kind: dynamic.kind,
                labels: self.labels(&dynamic, &scope, &block.header)?,
                header: block.header.clone(),
                content: dynamic.content,
            };
            sink(&expanded, &scope, out);
        }
        Ok(())
    }

    fn elements(
        &self,
        dynamic: &Dynamic<'_>,
        scope: &Scope<'_>,
    ) -> Result<Vec<(Value, Value)>, Fault> {
        elements(dynamic.for_each.eval(self.text, self.host, scope)?).map_err(|other| {
            let detail = format!("for_each takes a list or an object{}", runtime_hint(&other));
            Fault::new(
                dynamic.for_each.range(),
                "Invalid dynamic for_each value",
                detail,
            )
        })
    }

    fn labels(
        &self,
        dynamic: &Dynamic<'_>,
        scope: &Scope<'_>,
        header: &Range<usize>,
    ) -> Result<Vec<(String, Range<usize>)>, Fault> {
        let Some(labels) = &dynamic.labels else {
            return Ok(Vec::new());
        };
        let value = labels.eval(self.text, self.host, scope)?;
        let texts: Option<Vec<String>> = value
            .as_array()
            .and_then(|items| items.iter().map(to_text).collect());
        let texts = texts.ok_or_else(|| {
            let iterator = &dynamic.iterator;
            let detail = format!("labels takes a list of strings, as in [{iterator}.value]");
            Fault::new(labels.range(), "Invalid dynamic block labels", detail)
        })?;
        Ok(texts
            .into_iter()
            .map(|text| (text, header.clone()))
            .collect())
    }
}

fn read<'a>(block: &'a Block<'a>, items: &Items<'a>) -> Result<Dynamic<'a>, Fault> {
    let header = || block.header.clone();
    let [(kind, _)] = &block.labels[..] else {
        let detail = "All dynamic blocks must have 1 labels (name): write dynamic \"port\" {";
        return Err(Fault::new(header(), "Missing name for dynamic", detail));
    };
    let (mut for_each, mut iterator, mut labels) = (None, kind.clone(), None);
    for attribute in &items.attributes {
        match attribute.name {
            "for_each" => for_each = Some(attribute.expr),
            "iterator" => iterator = iterator_name(&attribute.expr)?,
            "labels" => labels = Some(attribute.expr),
            other => {
                let detail = format!(
                    "An argument named {other:?} is not expected here.{} Expected here: for_each, \
                     iterator and labels, and one content block.",
                    hint(other, ATTRIBUTES),
                );
                return Err(Fault::new(
                    attribute.name_range.clone(),
                    "Unsupported argument",
                    detail,
                ));
            }
        }
    }
    let missing = |summary: &str, detail: &str| Fault::new(header(), summary, detail);
    let content = match &items.blocks[..] {
        [only] if only.kind == "content" => only.content,
        [] => {
            let detail = "A dynamic block needs a content { … } block";
            return Err(missing("Missing dynamic content block", detail));
        }
        [.., last] => {
            let detail = "A dynamic block holds one content block and no other block";
            return Err(Fault::new(
                last.header.clone(),
                "Extraneous dynamic content block",
                detail,
            ));
        }
    };
    let for_each = for_each.ok_or_else(|| {
        let detail = "The argument \"for_each\" is required, but no definition was found.";
        missing("Missing required argument", detail)
    })?;
    Ok(Dynamic {
        kind,
        for_each,
        iterator,
        labels,
        content,
    })
}

fn iterator_name(expr: &Expr<'_>) -> Result<String, Fault> {
    match expr.syntax()? {
        Expression::Variable(name) if !matches!(name.as_str(), "var" | "local") => {
            Ok(name.to_string())
        }
        _ => {
            let detail = "iterator takes a name without quotes, other than var and local";
            Err(Fault::new(
                expr.range(),
                "Invalid dynamic iterator name",
                detail,
            ))
        }
    }
}
