//! Functions of the language.

mod call;
mod collection;
mod encoding;
mod filesystem;
mod format;
mod function;
mod hash;
mod identifier;
mod network;
mod number;
pub(crate) mod sets;
mod text;
mod time;
mod unavailable;
mod yaml;

use hcl_edit::Span;
use hcl_edit::expr::{Expression, FuncCall};

use self::call::Call;
use self::function::Function;
use super::eval::{Evaluator, fault, range_of};
use super::scope::Scope;
use super::types;
use super::value::{Value, type_name};
use crate::source::Fault;
use suggest::hint;

/// Functions that evaluate their arguments themselves.
const SPECIAL: [(&str, &str); 3] = [
    ("can", "expression"),
    ("try", "expression…"),
    ("convert", "value, type"),
];

fn all() -> impl Iterator<Item = &'static Function> {
    [
        number::FUNCTIONS,
        text::FUNCTIONS,
        format::FUNCTIONS,
        collection::FUNCTIONS,
        sets::FUNCTIONS,
        encoding::FUNCTIONS,
        yaml::FUNCTIONS,
        hash::FUNCTIONS,
        time::FUNCTIONS,
        network::FUNCTIONS,
        identifier::FUNCTIONS,
        filesystem::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the names of all functions.
pub fn names() -> impl Iterator<Item = &'static str> {
    all()
        .map(|function| function.name)
        .chain(SPECIAL.map(|(name, _)| name))
}

/// Returns the error of calling `name`, if it is no function.
pub(crate) fn problem(name: &str) -> Option<(&'static str, String)> {
    if names().any(|known| known == name) {
        return None;
    }
    if let Some(instead) = unavailable::instead(name) {
        let detail = format!("The function {name} is not available: {instead}");
        return Some(("Function not available", detail));
    }
    let detail = format!(
        "There is no function named {name:?}.{} The functions are listed in docs/job-files.md",
        hint(name, names()),
    );
    Some(("Call to unknown function", detail))
}

impl Evaluator<'_> {
    pub(super) fn call(
        &self,
        expression: &Expression,
        call: &FuncCall,
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let name = call.name.name.as_str();
        match name {
            "can" => return self.can(expression, call, scope),
            "try" => return self.first_that_works(expression, call, scope),
            "convert" => return self.convert(expression, call, scope),
            _ => {}
        }
        let Some(function) = all().find(|function| function.name == name) else {
            let (summary, detail) =
                problem(name).unwrap_or(("Error in function call", String::new()));
            let at = call
                .name
                .name
                .span()
                .unwrap_or_else(|| range_of(expression));
            return Err(Fault::new(at, summary, detail));
        };
        let arguments = self.arguments(call, scope)?;
        let call = Call {
            arguments,
            host: self.host,
        };
        let result =
            check_count(function, call.arguments.len()).and_then(|()| (function.call)(&call));
        let value = result.map_err(|problem| {
            let detail = format!("Call to function {name:?} failed: {problem}");
            fault(expression, "Error in function call", detail)
        })?;
        self.pay(expression, self.host.meter.copy(&value))?;
        Ok(value)
    }

    /// Evaluates the arguments; `...` expands the last one.
    fn arguments(&self, call: &FuncCall, scope: &Scope<'_>) -> Result<Vec<Value>, Fault> {
        let mut values = Vec::with_capacity(call.args.len());
        for (position, argument) in call.args.iter().enumerate() {
            let value = self.eval(argument, scope)?;
            let expanded = call.args.expand_final() && position + 1 == call.args.len();
            match value {
                Value::Array(items) if expanded => values.extend(items),
                other if expanded => {
                    let detail = format!("... takes a list; got {}", type_name(&other));
                    return Err(fault(argument, "Invalid expanding argument value", detail));
                }
                other => values.push(other),
            }
        }
        Ok(values)
    }

    fn can(
        &self,
        expression: &Expression,
        call: &FuncCall,
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let [only] = arguments_of(call)
            .try_into()
            .map_err(|_| wrong_count(expression, "can"))?;
        Ok(Value::Bool(self.eval(only, scope).is_ok()))
    }

    fn first_that_works(
        &self,
        expression: &Expression,
        call: &FuncCall,
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let mut last = wrong_count(expression, "try");
        for argument in call.args.iter() {
            match self.eval(argument, scope) {
                Ok(value) => return Ok(value),
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    fn convert(
        &self,
        expression: &Expression,
        call: &FuncCall,
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let [value, wanted] = arguments_of(call)
            .try_into()
            .map_err(|_| wrong_count(expression, "convert"))?;
        let wanted = types::read(wanted)?;
        let value = self.eval(value, scope)?;
        types::convert(value, &wanted).map_err(|problem| {
            let detail = format!("Call to function \"convert\" failed: {problem}");
            fault(expression, "Error in function call", detail)
        })
    }
}

fn arguments_of(call: &FuncCall) -> Vec<&Expression> {
    call.args.iter().collect()
}

fn wrong_count(expression: &Expression, name: &str) -> Fault {
    let parameters = SPECIAL
        .iter()
        .find(|(known, _)| *known == name)
        .map_or("", |(_, p)| p);
    let detail = format!("call it as {name}({parameters})");
    fault(expression, "Wrong number of function arguments", detail)
}

/// Checks the number of arguments against the parameters: `text, n?, list…`.
fn check_count(function: &Function, count: usize) -> Result<(), String> {
    let parameters: Vec<&str> = function
        .parameters
        .split(", ")
        .filter(|parameter| !parameter.is_empty())
        .collect();
    let optional = |parameter: &&&str| parameter.ends_with(['?', '…']);
    let least = parameters.len() - parameters.iter().filter(optional).count();
    let unlimited = parameters
        .last()
        .is_some_and(|parameter| parameter.ends_with('…'));
    if count < least || (count > parameters.len() && !unlimited) {
        let got = if count == 1 {
            "1 argument".to_owned()
        } else {
            format!("{count} arguments")
        };
        let signature = format!("{}({})", function.name, function.parameters);
        return Err(format!("got {got}, call it as {signature}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
