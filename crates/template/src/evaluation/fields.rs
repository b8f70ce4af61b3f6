//! Fields and methods of values: `.name`, `$x.name`, `scratch.Set "a" 1`.

use super::Evaluator;
use crate::error::Fault;
use crate::value::Value;

impl Evaluator<'_> {
    /// The field `name` of `object`, or the result of its method with `arguments`.
    pub(super) fn field(
        &mut self,
        at: usize,
        object: &Value,
        name: &str,
        arguments: Vec<Value>,
    ) -> Result<Value, Fault> {
        self.step(at)?;
        if matches!(object, Value::Scratch) {
            let cost = self.scratch.cost(name, &arguments);
            self.budget
                .charge_values(&arguments)
                .and_then(|()| self.budget.charge(cost))
                .map_err(|message| Fault::new(at, message))?;
            return self
                .scratch
                .call(name, &arguments)
                .map_err(|message| Fault::new(at, format!("scratch.{name}: {message}")));
        }
        if !arguments.is_empty() {
            return Err(Fault::new(
                at,
                format!(".{name} is not a method: it takes no arguments"),
            ));
        }
        if let Value::Record(record) = object
            && let Some(value) = record.fields.get(name)
        {
            return Ok(value.clone());
        }
        if let Some(map) = object.as_map() {
            return match map.get(name) {
                Some(value) => Ok(value.clone()),
                None if self.context.missing_key_is_error => Err(Fault::new(
                    at,
                    format!("the map has no key {name:?}, and error_on_missing_key is set"),
                )),
                None => Ok(Value::Nil),
            };
        }
        match object {
            Value::Nothing if self.context.missing_key_is_error => Err(Fault::new(
                at,
                format!(
                    "there is no data that .{name} could be a key of, and error_on_missing_key is set"
                ),
            )),
            Value::Nothing => Ok(Value::Nothing),
            Value::Nil => Err(Fault::new(at, format!(".{name} of a value that is nil"))),
            Value::Record(record) => {
                let known: Vec<_> = record
                    .fields
                    .keys()
                    .map(|name| format!(".{name}"))
                    .collect();
                Err(Fault::new(
                    at,
                    format!("there is no field .{name}; there are {}", known.join(", ")),
                ))
            }
            _ => Err(Fault::new(
                at,
                format!(
                    "a value of type {} has no field .{name}",
                    object.type_name()
                ),
            )),
        }
    }
}
