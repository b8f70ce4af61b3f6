//! Numbers: `abs ceil floor log max min parseint pow signum`.

use super::call::Call;
use super::function::Function;
use crate::language::operators::compare;
use crate::language::value::{Value, float, integer, to_float, whole};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "abs",
        parameters: "number",
        call: abs,
    },
    Function {
        name: "ceil",
        parameters: "number",
        call: |call| round(call, f64::ceil),
    },
    Function {
        name: "floor",
        parameters: "number",
        call: |call| round(call, f64::floor),
    },
    Function {
        name: "log",
        parameters: "number, base",
        call: log,
    },
    Function {
        name: "max",
        parameters: "number, number…",
        call: |call| extreme(call, true),
    },
    Function {
        name: "min",
        parameters: "number, number…",
        call: |call| extreme(call, false),
    },
    Function {
        name: "parseint",
        parameters: "text, base",
        call: parseint,
    },
    Function {
        name: "pow",
        parameters: "number, exponent",
        call: pow,
    },
    Function {
        name: "signum",
        parameters: "number",
        call: signum,
    },
];

fn finite(number: f64) -> Result<Value, String> {
    float(number)
        .map(Value::Number)
        .ok_or_else(|| "the result is not a number".to_owned())
}

fn abs(call: &Call<'_>) -> Result<Value, String> {
    let number = call.number(0)?;
    match whole(&number) {
        Some(whole) => Ok(Value::Number(integer(whole.abs()))),
        None => finite(to_float(&number).abs()),
    }
}

fn round(call: &Call<'_>, how: fn(f64) -> f64) -> Result<Value, String> {
    let number = call.number(0)?;
    if whole(&number).is_some() {
        Ok(Value::Number(number))
    } else {
        finite(how(to_float(&number)))
    }
}

fn log(call: &Call<'_>) -> Result<Value, String> {
    finite(call.float(0)?.ln() / call.float(1)?.ln())
}

fn pow(call: &Call<'_>) -> Result<Value, String> {
    finite(call.float(0)?.powf(call.float(1)?))
}

fn signum(call: &Call<'_>) -> Result<Value, String> {
    let number = call.float(0)?;
    Ok(Value::from(if number > 0.0 {
        1
    } else if number < 0.0 {
        -1
    } else {
        0
    }))
}

fn extreme(call: &Call<'_>, largest: bool) -> Result<Value, String> {
    let mut best = call.number(0)?;
    for position in 1..call.arguments.len() {
        let number = call.number(position)?;
        let order = compare(&number, &best);
        if (largest && order.is_gt()) || (!largest && order.is_lt()) {
            best = number;
        }
    }
    Ok(Value::Number(best))
}

fn parseint(call: &Call<'_>) -> Result<Value, String> {
    let text = call.text(0)?;
    let base = call.whole(1)?;
    let base = u32::try_from(base)
        .ok()
        .filter(|base| (2..=36).contains(base));
    let base = base.ok_or_else(|| "the base must be between 2 and 36".to_owned())?;
    let number = i64::from_str_radix(&text, base);
    number
        .map(Value::from)
        .map_err(|_| format!("{text:?} is not a whole number in base {base}"))
}
