//! Arithmetic. The second argument is the left side, so that a pipeline reads well: `{{ 5 | subtract 2 }}` is 3.

use crate::format::printf::as_float;
use crate::function::{Call, Failure, Function, exact};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    exact("add", 2, |call| {
        arithmetic(call, i128::checked_add, |a, b| a + b)
    }),
    exact("subtract", 2, |call| {
        arithmetic(call, i128::checked_sub, |a, b| a - b)
    }),
    exact("multiply", 2, |call| {
        arithmetic(call, i128::checked_mul, |a, b| a * b)
    }),
    exact("divide", 2, |call| {
        if integer(call.value(0)) == Some(0) {
            return Err("division by zero".into());
        }
        arithmetic(call, i128::checked_div, |a, b| a / b)
    }),
    exact("modulo", 2, |call| {
        match (integer(call.value(1)), integer(call.value(0))) {
            (_, Some(0)) => Err("division by zero".into()),
            (Some(a), Some(b)) => fit(a % b, false),
            _ => Err(call.wrong(0, "an integer")),
        }
    }),
    exact("minimum", 2, |call| choose(call, |a, b| a <= b)),
    exact("maximum", 2, |call| choose(call, |a, b| a >= b)),
];

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}

fn arithmetic(
    call: &Call<'_>,
    whole: fn(i128, i128) -> Option<i128>,
    float: fn(f64, f64) -> f64,
) -> Result<Value, Failure> {
    let (right, left) = (call.value(0), call.value(1));
    if let (Some(left), Some(right)) = (integer(left), integer(right)) {
        let unsigned = matches!(
            (call.value(0), call.value(1)),
            (Value::Uint(_), Value::Uint(_))
        );
        return fit(
            whole(left, right).ok_or("the result is too large")?,
            unsigned,
        );
    }
    match (as_float(left), as_float(right)) {
        (Some(left), Some(right)) => Ok(Value::Float(float(left, right))),
        (None, _) => Err(call.wrong(1, "a number")),
        (_, None) => Err(call.wrong(0, "a number")),
    }
}

fn fit(result: i128, unsigned: bool) -> Result<Value, Failure> {
    if unsigned && let Ok(result) = u64::try_from(result) {
        return Ok(Value::Uint(result));
    }
    i64::try_from(result)
        .map(Value::Int)
        .map_err(|_| "the result does not fit into 64 bits".into())
}

fn choose(call: &Call<'_>, first: fn(f64, f64) -> bool) -> Result<Value, Failure> {
    match (as_float(call.value(0)), as_float(call.value(1))) {
        (Some(a), Some(b)) => Ok(call.value(usize::from(!first(a, b))).clone()),
        (None, _) => Err(call.wrong(0, "a number")),
        (_, None) => Err(call.wrong(1, "a number")),
    }
}
