//! A job file's inputs: which variables it declares, and what they are set to.

mod assign;
mod declare;
pub(crate) mod locals;
pub(crate) mod types;

use std::ops::Range;

use serde_json::{Map, Value};

use self::types::Type;
use crate::collector::Collector;
use crate::document::{Block, Expr};
use crate::inputs::Inputs;
use crate::language::eval::Host;
use crate::language::scope::Scope;
use crate::source::Fault;

/// One variable of the file.
struct Declaration<'a> {
    name: String,
    /// What messages point at.
    span: Range<usize>,
    /// `None` when the file names none; the default then suggests one.
    wanted: Option<Type>,
    default: Option<Value>,
    validations: Vec<Validation<'a>>,
}

struct Validation<'a> {
    span: Range<usize>,
    condition: Expr<'a>,
    error_message: Option<Expr<'a>>,
}

impl Declaration<'_> {
    /// Returns the type that values are converted to.
    fn value_type(&self) -> Type {
        let inferred = || self.default.as_ref().map_or(Type::Any, Type::of);
        self.wanted.clone().unwrap_or_else(inferred)
    }
}

/// Returns the values of all variables that the blocks declare; what is wrong goes to `out`.
///
/// `blocks` are the file's `variable` and `variables` blocks.
pub(crate) fn values(
    blocks: &[Block<'_>],
    inputs: &Inputs,
    host: &Host,
    out: &mut Collector,
) -> Map<String, Value> {
    let declarations = declare::declarations(blocks, host, out);
    let values = assign::values(&declarations, inputs, host, out);
    for declaration in &declarations {
        validate(declaration, &values, host, out);
    }
    values
}

/// Checks a variable's value with the conditions that its block gives.
fn validate(
    declaration: &Declaration<'_>,
    values: &Map<String, Value>,
    host: &Host,
    out: &mut Collector,
) {
    let Some(value) = values.get(&declaration.name) else {
        return;
    };
    // A condition sees its own variable and no other.
    let own = Value::Object(Map::from_iter([(declaration.name.clone(), value.clone())]));
    let names = [("var", &own)];
    let scope = Scope::new(&names);
    for validation in &declaration.validations {
        if let Err(fault) = check(
            declaration,
            validation,
            host,
            &scope,
            &out.source.text.clone(),
        ) {
            out.fault(fault);
        }
    }
}

fn check(
    declaration: &Declaration<'_>,
    validation: &Validation<'_>,
    host: &Host,
    scope: &Scope<'_>,
    text: &str,
) -> Result<(), Fault> {
    let condition = validation.condition.eval(text, host, scope)?;
    let holds = crate::language::value::to_bool(&condition).ok_or_else(|| {
        let detail = "the condition of a validation must be true or false";
        Fault::new(
            validation.condition.span(),
            "Invalid variable validation result",
            detail,
        )
    })?;
    if holds {
        return Ok(());
    }
    let message = match &validation.error_message {
        Some(message) => message.eval(text, host, scope)?,
        None => Value::Null,
    };
    let message = message
        .as_str()
        .unwrap_or("the condition of its validation does not hold");
    let detail = format!("{message} (variable {:?})", declaration.name);
    Err(Fault::new(
        validation.span.clone(),
        "Invalid value for variable",
        detail,
    ))
}
