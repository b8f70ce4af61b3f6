//! Input variables of a file: declarations, values and validation.

mod assign;
mod declaration;
mod declare;
pub(crate) mod locals;

use serde_json::{Map, Value};

use self::declaration::{Declaration, Validation};
use crate::collector::Collector;
use crate::document::Block;
use crate::inputs::Inputs;
use crate::language::eval::Host;
use crate::language::scope::Scope;
use crate::source::Fault;

/// Returns the values of all declared variables; errors go to `out`.
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

/// Checks the value of a variable by the conditions of its block.
fn validate(
    declaration: &Declaration<'_>,
    values: &Map<String, Value>,
    host: &Host,
    out: &mut Collector,
) {
    let Some(value) = values.get(&declaration.name) else {
        return;
    };
    // A condition can use its own variable only.
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
            validation.condition.range(),
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
        validation.range.clone(),
        "Invalid value for variable",
        detail,
    ))
}
