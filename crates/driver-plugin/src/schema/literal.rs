//! Fixed values of a schema: expressions without variables and functions.

use hcl_edit::expr::{Expression, ObjectKey, UnaryOperator};
use serde_json::{Map, Number, Value};

use super::path::DEPTH_MAX;

/// Returns the value of an expression.
///
/// # Errors
/// It is no fixed value.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let wrong = || format!("the plugin's schema has {text:?}, which is no fixed value");
    let expression: Expression = text.parse().map_err(|_| wrong())?;
    value(&expression, 0).ok_or_else(wrong)
}

fn value(expression: &Expression, depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    match expression {
        Expression::Null(_) => Some(Value::Null),
        Expression::Bool(flag) => Some(Value::Bool(*flag.value())),
        Expression::Number(number) => number_of(number.value()).map(Value::Number),
        Expression::String(text) => Some(Value::String(text.value().clone())),
        Expression::Parenthesis(inner) => value(inner.inner(), depth + 1),
        Expression::UnaryOp(negated) if *negated.operator.value() == UnaryOperator::Neg => {
            let number = value(&negated.expr, depth + 1)?;
            match number.as_i64() {
                Some(number) => Some(Value::from(number.checked_neg()?)),
                None => Number::from_f64(-number.as_f64()?).map(Value::Number),
            }
        }
        Expression::Array(items) => items.iter().map(|item| value(item, depth + 1)).collect(),
        Expression::Object(object) => {
            let mut fields = Map::new();
            for (key, item) in object.iter() {
                let name = match key {
                    ObjectKey::Ident(name) => name.as_str().to_owned(),
                    ObjectKey::Expression(name) => name.as_str()?.to_owned(),
                };
                fields.insert(name, value(item.expr(), depth + 1)?);
            }
            Some(Value::Object(fields))
        }
        _ => None,
    }
}

fn number_of(number: &hcl_edit::Number) -> Option<Number> {
    if let Some(number) = number.as_u64() {
        return Some(number.into());
    }
    if let Some(number) = number.as_i64() {
        return Some(number.into());
    }
    Number::from_f64(number.as_f64()?)
}
