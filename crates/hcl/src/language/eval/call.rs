//! Calls of functions, and the functions that evaluate their arguments themselves: `can`, `try`, `convert`.

use hcl_edit::Span;
use hcl_edit::expr::{Expression, FuncCall};

use super::{Evaluator, fault, range_of};
use crate::language::scope::Scope;
use crate::language::value::{Value, type_name};
use crate::language::{functions, types};
use crate::source::Fault;

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
        let Some(function) = functions::find(name) else {
            let (summary, detail) =
                functions::problem(name).unwrap_or(("Error in function call", String::new()));
            let at = call
                .name
                .name
                .span()
                .unwrap_or_else(|| range_of(expression));
            return Err(Fault::new(at, summary, detail));
        };
        let arguments = self.arguments(call, scope)?;
        let result = function.run(arguments, self.host);
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
    let parameters = functions::special_parameters(name);
    let detail = format!("call it as {name}({parameters})");
    fault(expression, "Wrong number of function arguments", detail)
}
