//! Reads `variable` and `variables` blocks.

use std::collections::BTreeMap;
use std::ops::Range;

use super::declaration::{Declaration, Validation};
use super::locals;
use crate::collector::Collector;
use crate::document::{Attribute, Block, Expr, Items};
use crate::language::eval::Host;
use crate::language::references::{Kind, Reference};
use crate::language::types::{self, Type};
use crate::language::{Scope, Value, functions};
use crate::source::Fault;
use suggest::{hint, list};

const ATTRIBUTES: [&str; 3] = ["type", "default", "description"];

/// Returns the variables that the blocks declare, in the order of the file.
pub(super) fn declarations<'a>(
    blocks: &[Block<'a>],
    host: &Host,
    out: &mut Collector,
) -> Vec<Declaration<'a>> {
    let mut declarations = Vec::new();
    let mut seen: BTreeMap<String, Range<usize>> = BTreeMap::new();
    for block in blocks {
        let declared = if block.kind == "variable" {
            one(block, host, out).map(|declaration| vec![declaration])
        } else {
            several(block, host, out)
        };
        let declared = match declared {
            Ok(declared) => declared,
            Err(fault) => {
                out.fault(fault);
                continue;
            }
        };
        for declaration in declared {
            let earlier = seen.insert(declaration.name.clone(), declaration.range.clone());
            if let Some(earlier) = earlier {
                let (line, _) = out.source.position(earlier.start);
                let detail = format!(
                    "The variable {:?} was already declared on line {line}: remove one",
                    declaration.name,
                );
                out.fault(Fault::new(declaration.range, "Duplicate variable", detail));
                continue;
            }
            declarations.push(declaration);
        }
    }
    declarations
}

/// Reads `variable "name" { … }`.
fn one<'a>(block: &Block<'a>, host: &Host, out: &mut Collector) -> Result<Declaration<'a>, Fault> {
    let [(name, _)] = &block.labels[..] else {
        let detail =
            "All variable blocks must have 1 labels (name), as in variable \"count\" { … }";
        return Err(Fault::new(
            block.header.clone(),
            "Missing name for variable",
            detail,
        ));
    };
    let items = block
        .content
        .items(&|kind| (kind == "validation").then_some(0))?;
    let mut declaration = Declaration {
        name: name.clone(),
        range: block.header.clone(),
        wanted: None,
        default: None,
        validations: Vec::new(),
    };
    for attribute in &items.attributes {
        match attribute.name {
            "type" => declaration.wanted = Some(types::read(&attribute.expr.syntax()?)?),
            "default" => declaration.default = Some(constant(attribute, host, out)?),
            "description" => drop(constant(attribute, host, out)?),
            other => return Err(unexpected(other, attribute)),
        }
    }
    for inner in &items.blocks {
        declaration.validations.push(validation(inner, name, out)?);
    }
    if let (Some(default), Some(wanted)) = (&declaration.default, &declaration.wanted) {
        declaration.default = Some(typed_default(default, wanted, &items)?);
    }
    Ok(declaration)
}

fn unexpected(name: &str, attribute: &Attribute<'_>) -> Fault {
    let detail = format!(
        "An argument named {name:?} is not expected here.{} Expected here: {}, and validation \
         blocks.",
        hint(name, ATTRIBUTES),
        list(ATTRIBUTES, "and"),
    );
    Fault::new(attribute.name_range.clone(), "Unsupported argument", detail)
}

fn typed_default(default: &Value, wanted: &Type, items: &Items<'_>) -> Result<Value, Fault> {
    types::convert(default.clone(), wanted).map_err(|problem| {
        let written = items
            .attributes
            .iter()
            .find(|attribute| attribute.name == "default");
        let range = written.map_or(0..0, |attribute| attribute.expr.range());
        let detail =
            format!("This default value is not compatible with the variable's type: {problem}");
        Fault::new(range, "Invalid default value for variable", detail)
    })
}

/// Reads `variables { name = default }`, the short form for several.
fn several<'a>(
    block: &Block<'a>,
    host: &Host,
    out: &mut Collector,
) -> Result<Vec<Declaration<'a>>, Fault> {
    if let Some((_, range)) = block.labels.first() {
        let detail = "No labels are expected for variables blocks: write variables { name = … }";
        return Err(Fault::new(
            range.clone(),
            "Extraneous label for variables",
            detail,
        ));
    }
    let items = block.content.items(&|_| None)?;
    if let Some(inner) = items.blocks.first() {
        let detail =
            "A variables block holds defaults only: write variable \"name\" { … } beside it";
        return Err(Fault::new(
            inner.header.clone(),
            "Unsupported block type",
            detail,
        ));
    }
    let mut declarations = Vec::new();
    for attribute in &items.attributes {
        declarations.push(Declaration {
            name: attribute.name.to_owned(),
            range: attribute.name_range.clone(),
            wanted: None,
            default: Some(constant(attribute, host, out)?),
            validations: Vec::new(),
        });
    }
    Ok(declarations)
}

fn validation<'a>(
    block: &Block<'a>,
    variable: &str,
    out: &mut Collector,
) -> Result<Validation<'a>, Fault> {
    if block.kind != "validation" {
        let detail = format!(
            "Blocks of type {:?} are not expected here. Expected here: validation.",
            block.kind,
        );
        return Err(Fault::new(
            block.header.clone(),
            "Unsupported block type",
            detail,
        ));
    }
    let items = block.content.items(&|_| None)?;
    let (mut condition, mut error_message) = (None, None);
    for attribute in items.attributes {
        only_own_variable(&attribute.expr, variable, out);
        match attribute.name {
            "condition" => condition = Some(attribute.expr),
            "error_message" => error_message = Some(attribute.expr),
            other => {
                let detail = format!(
                    "An argument named {other:?} is not expected here. Expected here: condition \
                     and error_message.",
                );
                return Err(Fault::new(
                    attribute.name_range,
                    "Unsupported argument",
                    detail,
                ));
            }
        }
    }
    let condition = condition.ok_or_else(|| {
        let detail = "The argument \"condition\" is required, but no definition was found.";
        Fault::new(block.header.clone(), "Missing required argument", detail)
    })?;
    Ok(Validation {
        range: condition.range(),
        condition,
        error_message,
    })
}

fn only_own_variable(expr: &Expr<'_>, variable: &str, out: &mut Collector) {
    for reference in expr.references() {
        let allowed = match reference.kind {
            Kind::Variable => reference.name == variable,
            Kind::Function => functions::problem(&reference.name).is_none(),
            Kind::Local | Kind::Shadowing => false,
        };
        if !allowed {
            let detail = format!(
                "The condition for variable {variable:?} can only refer to the variable itself, \
                 using var.{variable}",
            );
            let summary = "Invalid reference in variable validation";
            out.fault(Fault::new(reference.range, summary, detail));
        }
    }
}

/// Returns the value of an expression that may not use variables or locals.
fn constant(attribute: &Attribute<'_>, host: &Host, out: &mut Collector) -> Result<Value, Fault> {
    for reference in attribute.expr.references() {
        if let Some(fault) = not_constant(&reference) {
            return Err(fault);
        }
    }
    let value = attribute
        .expr
        .eval(&out.source.text, host, &Scope::default())?;
    locals::check_depth(&value, attribute.expr.range())?;
    Ok(value)
}

fn not_constant(reference: &Reference) -> Option<Fault> {
    match reference.kind {
        Kind::Function => {
            let (summary, detail) = functions::problem(&reference.name)?;
            Some(Fault::new(reference.range.clone(), summary, detail))
        }
        _ => {
            let detail = "Variables may not be used here: use a local for what depends on others";
            Some(Fault::new(
                reference.range.clone(),
                "Variables not allowed",
                detail,
            ))
        }
    }
}
