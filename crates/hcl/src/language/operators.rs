//! Arithmetic, comparison and logic.
//!
//! Integers stay exact as long as they fit into 64 bits; beyond that, and with fractions, numbers
//! are floats. Strings that spell a number or a bool count as one, as in HCL.

use hcl_edit::expr::{BinaryOperator, UnaryOperator};
use serde_json::Number;

use super::value::{Value, float, integer, runtime_hint, to_bool, to_float, to_number, whole};

/// Returns the value, or an error message.
pub(super) fn unary(operator: UnaryOperator, value: &Value) -> Result<Value, String> {
    match operator {
        UnaryOperator::Neg => {
            let number = operand(value)?;
            match whole(&number) {
                Some(whole) => Ok(Value::Number(integer(-whole))),
                None => finite(-to_float(&number)),
            }
        }
        UnaryOperator::Not => Ok(Value::Bool(!condition(value)?)),
    }
}

/// Returns the value, or an error message; `&&` and `||` are handled by the evaluator.
pub(super) fn binary(
    left: &Value,
    operator: BinaryOperator,
    right: &Value,
) -> Result<Value, String> {
    match operator {
        BinaryOperator::Eq => return Ok(Value::Bool(left == right)),
        BinaryOperator::NotEq => return Ok(Value::Bool(left != right)),
        BinaryOperator::And => return Ok(Value::Bool(condition(left)? && condition(right)?)),
        BinaryOperator::Or => return Ok(Value::Bool(condition(left)? || condition(right)?)),
        _ => {}
    }
    let (left, right) = (operand(left)?, operand(right)?);
    match operator {
        BinaryOperator::Less => Ok(Value::Bool(compare(&left, &right).is_lt())),
        BinaryOperator::LessEq => Ok(Value::Bool(compare(&left, &right).is_le())),
        BinaryOperator::Greater => Ok(Value::Bool(compare(&left, &right).is_gt())),
        BinaryOperator::GreaterEq => Ok(Value::Bool(compare(&left, &right).is_ge())),
        _ => arithmetic(&left, operator, &right),
    }
}

pub(crate) fn compare(left: &Number, right: &Number) -> std::cmp::Ordering {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        // Both are finite, so they compare.
        _ => to_float(left).total_cmp(&to_float(right)),
    }
}

fn arithmetic(left: &Number, operator: BinaryOperator, right: &Number) -> Result<Value, String> {
    let divides = matches!(operator, BinaryOperator::Div | BinaryOperator::Mod);
    if divides && to_float(right) == 0.0 {
        return Err("division by zero: check the value after the operator".to_owned());
    }
    if let (Some(left), Some(right)) = (whole(left), whole(right)) {
        // 64-bit integers, so none of these overflows 128 bits.
        let exact = match operator {
            BinaryOperator::Plus => Some(left + right),
            BinaryOperator::Minus => Some(left - right),
            BinaryOperator::Mul => Some(left * right),
            BinaryOperator::Mod => Some(left % right),
            BinaryOperator::Div if left % right == 0 => Some(left / right),
            _ => None,
        };
        if let Some(exact) = exact {
            return Ok(Value::Number(integer(exact)));
        }
    }
    let (left, right) = (to_float(left), to_float(right));
    finite(match operator {
        BinaryOperator::Plus => left + right,
        BinaryOperator::Minus => left - right,
        BinaryOperator::Mul => left * right,
        BinaryOperator::Mod => left % right,
        _ => left / right,
    })
}

fn finite(number: f64) -> Result<Value, String> {
    float(number)
        .map(Value::Number)
        .ok_or_else(|| "the result is too large".to_owned())
}

fn operand(value: &Value) -> Result<Number, String> {
    to_number(value).ok_or_else(|| format!("a number is required{}", runtime_hint(value)))
}

/// Returns the bool of a condition.
pub(super) fn condition(value: &Value) -> Result<bool, String> {
    to_bool(value).ok_or_else(|| format!("a bool is required{}", runtime_hint(value)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_are_exact_and_large_ones_become_floats_instead_of_overflowing() {
        use BinaryOperator::{Div, Minus, Mod, Mul, Plus};
        for (left, operator, right, result) in [
            (json!(2), Plus, json!(3), json!(5)),
            (json!(2), Minus, json!(3), json!(-1)),
            (json!("2"), Mul, json!(3), json!(6)),
            (json!(10), Div, json!(4), json!(2.5)),
            (json!(10), Div, json!(5), json!(2)),
            (json!(-7), Mod, json!(4), json!(-3)),
            (json!(0.5), Plus, json!(0.5), json!(1)),
            (
                json!(u64::MAX),
                Plus,
                json!(1),
                json!(18_446_744_073_709_551_616.0),
            ),
            (
                json!(i64::MIN),
                Mul,
                json!(2),
                json!(-18_446_744_073_709_551_616.0),
            ),
        ] {
            assert_eq!(binary(&left, operator, &right), Ok(result));
        }
    }

    #[test]
    fn operations_without_a_result_are_errors_not_panics() {
        use BinaryOperator::{Div, Less, Mod, Mul, Plus};
        for (left, operator, right, message) in [
            (json!(1), Div, json!(0), "division by zero"),
            (json!(1), Mod, json!(0.0), "division by zero"),
            (json!(1e308), Mul, json!(1e308), "too large"),
            (
                json!("a"),
                Plus,
                json!(1),
                "a number is required; got a string",
            ),
            (
                json!([]),
                Less,
                json!(1),
                "a number is required; got a list",
            ),
            (
                json!("${meta.x}"),
                Plus,
                json!(1),
                "known only when the task runs",
            ),
        ] {
            let error = binary(&left, operator, &right).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        assert!(unary(UnaryOperator::Not, &json!(1)).is_err());
        assert_eq!(
            unary(UnaryOperator::Neg, &json!(i64::MIN)),
            Ok(json!(9_223_372_036_854_775_808_u64))
        );
    }
}
