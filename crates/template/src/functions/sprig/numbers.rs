//! Sprig's arithmetic. Texts count as the number they spell, or zero.

use crate::budget::Budget;
use crate::format::printf::as_float;
use crate::function::{Call, Failure, Function, between, exact, many};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    many("sprig_add", 0, |call| fold(call, i64::checked_add)),
    many("sprig_mul", 1, |call| fold(call, i64::checked_mul)),
    exact("sprig_sub", 2, |call| fold(call, i64::checked_sub)),
    exact("sprig_div", 2, |call| fold(call, i64::checked_div)),
    exact("sprig_mod", 2, |call| fold(call, i64::checked_rem)),
    exact("sprig_add1", 1, |call| {
        checked(to_int(call.value(0)).checked_add(1))
    }),
    many("sprig_max", 1, |call| pick(call, |a, b| a.max(b))),
    many("sprig_biggest", 1, |call| pick(call, |a, b| a.max(b))),
    many("sprig_min", 1, |call| pick(call, |a, b| a.min(b))),
    many("sprig_addf", 0, |call| fold_floats(call, |a, b| a + b)),
    many("sprig_mulf", 1, |call| fold_floats(call, |a, b| a * b)),
    many("sprig_subf", 1, |call| fold_floats(call, |a, b| a - b)),
    many("sprig_divf", 1, |call| fold_floats(call, |a, b| a / b)),
    exact("sprig_add1f", 1, |call| {
        Ok(Value::Float(to_float(call.value(0)) + 1.0))
    }),
    many("sprig_maxf", 1, |call| fold_floats(call, f64::max)),
    many("sprig_minf", 1, |call| fold_floats(call, f64::min)),
    exact("sprig_ceil", 1, |call| {
        Ok(Value::Float(to_float(call.value(0)).ceil()))
    }),
    exact("sprig_floor", 1, |call| {
        Ok(Value::Float(to_float(call.value(0)).floor()))
    }),
    between("sprig_round", 2, 3, |call| {
        let factor = 10_f64.powi(i32::try_from(call.int(1)?).unwrap_or(0).clamp(-300, 300));
        let half = if call.count() == 3 {
            to_float(call.value(2))
        } else {
            0.5
        };
        let scaled = to_float(call.value(0)) * factor;
        let rounded = if scaled - scaled.floor() >= half {
            scaled.ceil()
        } else {
            scaled.floor()
        };
        Ok(Value::Float(rounded / factor))
    }),
    exact("sprig_int", 1, |call| Ok(Value::Int(to_int(call.value(0))))),
    exact("sprig_int64", 1, |call| {
        Ok(Value::Int(to_int(call.value(0))))
    }),
    exact("sprig_atoi", 1, |call| {
        Ok(Value::Int(call.text(0)?.parse().unwrap_or(0)))
    }),
    exact("sprig_float64", 1, |call| {
        Ok(Value::Float(to_float(call.value(0))))
    }),
    exact("sprig_toDecimal", 1, |call| {
        Ok(Value::Int(
            i64::from_str_radix(&call.value(0).to_string(), 8).unwrap_or(0),
        ))
    }),
    exact("sprig_until", 1, |call| {
        let count = to_int(call.value(0));
        steps(0, count, count.signum())
    }),
    exact("sprig_untilStep", 3, |call| {
        steps(
            to_int(call.value(0)),
            to_int(call.value(1)),
            to_int(call.value(2)),
        )
    }),
    between("sprig_seq", 0, 3, |call| {
        let at = |position| to_int(call.value(position));
        let (first, step, last) = match call.count() {
            0 => return Ok("".into()),
            1 => (1, if at(0) < 1 { -1 } else { 1 }, at(0)),
            2 => (at(0), if at(1) < at(0) { -1 } else { 1 }, at(1)),
            _ => (at(0), at(1), at(2)),
        };
        let after = last
            .checked_add(step.signum())
            .ok_or("the number is too large")?;
        let Value::List(list) = steps(first, after, step)? else {
            return Ok("".into());
        };
        Ok(list
            .items
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
            .into())
    }),
];

/// A value as an integer; zero if it spells none.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a float saturates, as a conversion in Go does on most machines"
)]
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(value) => *value,
        Value::Uint(value) => i64::try_from(*value).unwrap_or(i64::MAX),
        Value::Float(value) => *value as i64,
        Value::Bool(value) => i64::from(*value),
        _ => match value
            .as_text()
            .and_then(|text| crate::lexer::parse_number(text.trim()))
        {
            Some(crate::lexer::Token::Int(value)) => value,
            _ => 0,
        },
    }
}

pub(super) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Bool(value) => f64::from(u8::from(*value)),
        _ => as_float(value)
            .or_else(|| value.as_text()?.trim().parse().ok())
            .unwrap_or(0.0),
    }
}

fn checked(result: Option<i64>) -> Result<Value, Failure> {
    result
        .map(Value::Int)
        .ok_or_else(|| "the result does not fit into 64 bits, or the division is by zero".into())
}

fn fold(call: &Call<'_>, combine: fn(i64, i64) -> Option<i64>) -> Result<Value, Failure> {
    let mut numbers = call.arguments.iter().map(to_int);
    let mut result = numbers.next().unwrap_or(0);
    for number in numbers {
        match combine(result, number) {
            Some(combined) => result = combined,
            None => return checked(None),
        }
    }
    Ok(Value::Int(result))
}

fn pick(call: &Call<'_>, choose: fn(i64, i64) -> i64) -> Result<Value, Failure> {
    Ok(Value::Int(
        call.arguments
            .iter()
            .map(to_int)
            .reduce(choose)
            .unwrap_or(0),
    ))
}

fn fold_floats(call: &Call<'_>, combine: fn(f64, f64) -> f64) -> Result<Value, Failure> {
    Ok(Value::Float(
        call.arguments
            .iter()
            .map(to_float)
            .reduce(combine)
            .unwrap_or(0.0),
    ))
}

fn steps(first: i64, last: i64, step: i64) -> Result<Value, Failure> {
    if step == 0 || (step > 0) != (last > first) {
        return Ok(Value::list(Vec::new())?);
    }
    let count = last.abs_diff(first).div_ceil(step.unsigned_abs());
    Budget::room_for(usize::try_from(count).unwrap_or(usize::MAX), 16)?;
    let numbers =
        (0..i64::try_from(count).unwrap_or(0)).map(|turn| Value::Int(first + turn * step));
    Ok(Value::list(numbers.collect())?)
}
