//! Functions of the task's context: environment, files, time, network; and templates in templates.

use crate::function::{Call, Failure, Function, between, exact};
use crate::value::{Value, WEIGHT_MAX};

mod time;

pub(super) const FUNCTIONS: &[Function] = &[
    exact("env", 1, |call| {
        Ok(variable(call)?.unwrap_or_default().into())
    }),
    exact("mustEnv", 1, |call| {
        let name = call.text(0)?;
        match variable(call)? {
            Some(value) if !value.is_empty() => Ok(value.into()),
            _ => Err(format!("the environment variable {name} is not set").into()),
        }
    }),
    exact("envOrDefault", 2, |call| match variable(call)? {
        Some(value) if !value.is_empty() => Ok(value.into()),
        _ => Ok(call.text(1)?.as_ref().into()),
    }),
    exact("file", 1, |call| {
        let path = call.text(0)?;
        if path.is_empty() {
            return Ok("".into());
        }
        Ok(call
            .interpreter
            .context()
            .files
            .read(&path, WEIGHT_MAX)?
            .into())
    }),
    between("timestamp", 0, 1, |call| {
        let layout = if call.count() == 1 {
            call.text(0)?
        } else {
            "".into()
        };
        Ok(time::timestamp(call.interpreter.context().now, &layout).into())
    }),
    exact("scratch", 0, |_| Ok(Value::Scratch)),
    between("executeTemplate", 1, 2, |call| {
        let name = call.text(0)?;
        let dot = if call.count() == 2 {
            call.value(1).clone()
        } else {
            Value::Nothing
        };
        let text = call
            .interpreter
            .template_text(call.at, &name, dot)
            .map_err(Failure::Fault)?;
        Ok(text.into())
    }),
    exact("sockaddr", 1, |call| {
        let expression = call.text(0)?;
        Ok(call.interpreter.sockaddr(&expression)?.into())
    }),
];

fn variable(call: &Call<'_>) -> Result<Option<String>, Failure> {
    Ok(call.interpreter.context().env.get(&*call.text(0)?).cloned())
}
