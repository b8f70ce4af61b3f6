//! Arguments of one call, with conversions.

use serde_json::{Map, Number};

use crate::language::eval::Host;
use crate::language::value::{Value, runtime_hint, to_float, to_number, to_text, whole};

pub(super) struct Call<'a> {
    pub(super) arguments: Vec<Value>,
    pub(super) host: &'a Host,
}

impl Call<'_> {
    /// Returns an argument; null if it was omitted.
    pub(super) fn value(&self, position: usize) -> &Value {
        self.arguments.get(position).unwrap_or(&Value::Null)
    }

    pub(super) fn given(&self, position: usize) -> bool {
        position < self.arguments.len()
    }

    pub(super) fn text(&self, position: usize) -> Result<String, String> {
        let value = self.value(position);
        to_text(value).ok_or_else(|| self.mismatch(position, "a string"))
    }

    pub(super) fn number(&self, position: usize) -> Result<Number, String> {
        to_number(self.value(position)).ok_or_else(|| self.mismatch(position, "a number"))
    }

    pub(super) fn float(&self, position: usize) -> Result<f64, String> {
        self.number(position).map(|number| to_float(&number))
    }

    /// Returns a whole number; one beyond 64 bits is refused.
    pub(super) fn whole(&self, position: usize) -> Result<i64, String> {
        let number = self.number(position)?;
        whole(&number)
            .and_then(|whole| i64::try_from(whole).ok())
            .ok_or_else(|| self.mismatch(position, "a whole number"))
    }

    pub(super) fn list(&self, position: usize) -> Result<&[Value], String> {
        match self.value(position) {
            Value::Array(items) => Ok(items),
            _ => Err(self.mismatch(position, "a list")),
        }
    }

    pub(super) fn texts(&self, position: usize) -> Result<Vec<String>, String> {
        let items = self.list(position)?;
        let texts: Option<Vec<String>> = items.iter().map(to_text).collect();
        texts.ok_or_else(|| self.mismatch(position, "a list of strings"))
    }

    pub(super) fn object(&self, position: usize) -> Result<&Map<String, Value>, String> {
        match self.value(position) {
            Value::Object(entries) => Ok(entries),
            _ => Err(self.mismatch(position, "an object")),
        }
    }

    /// Charges a result before it is allocated.
    pub(super) fn pay(&self, bytes: usize) -> Result<(), String> {
        self.host.meter.grow(bytes).map_err(str::to_owned)
    }

    pub(super) fn mismatch(&self, position: usize, wanted: &str) -> String {
        let hint = runtime_hint(self.value(position));
        format!("argument {} must be {wanted}{hint}", position + 1)
    }
}
