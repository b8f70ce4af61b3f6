//! `scratch`: values that a template keeps by name while it is rendered.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::value::Value;

/// The stored values.
#[derive(Default)]
pub(crate) struct Scratch {
    values: BTreeMap<Rc<str>, Value>,
}

impl Scratch {
    /// The method `name` with its arguments.
    ///
    /// # Errors
    /// There is no such method, or its arguments do not fit.
    pub(crate) fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        match (name, arguments) {
            ("Key", [key]) => Ok(Value::Bool(self.values.contains_key(text(key)?))),
            ("Get", [key]) => Ok(self.values.get(text(key)?).cloned().unwrap_or(Value::Nil)),
            ("Set", [key, value]) => {
                self.values.insert(Rc::clone(text(key)?), value.clone());
                Ok("".into())
            }
            ("SetX", [key, value]) => {
                self.values.entry(Rc::clone(text(key)?)).or_insert_with(|| value.clone());
                Ok("".into())
            }
            ("MapSet", [map, key, value]) => self.map_set(text(map)?, text(key)?, value, true),
            ("MapSetX", [map, key, value]) => self.map_set(text(map)?, text(key)?, value, false),
            ("MapValues", [map]) => match self.values.get(text(map)?) {
                Some(value) => match value.as_map() {
                    Some(entries) => Value::list(entries.values().cloned().collect()),
                    None => Err(format!("{map:?} is not a map", map = map.to_string())),
                },
                None => Ok(Value::Nil),
            },
            ("Key" | "Get" | "MapValues", _) => Err("takes 1 argument".to_owned()),
            ("Set" | "SetX", _) => Err("takes 2 arguments".to_owned()),
            ("MapSet" | "MapSetX", _) => Err("takes 3 arguments".to_owned()),
            _ => Err("there is no such method; there are Key, Get, Set, SetX, MapSet, MapSetX, MapValues".to_owned()),
        }
    }

    /// Bytes that a call copies: the map that it reads or changes.
    pub(crate) fn cost(&self, method: &str, arguments: &[Value]) -> usize {
        let name = arguments.first().and_then(Value::as_text);
        let stored = name
            .filter(|_| method.starts_with("Map"))
            .and_then(|name| self.values.get(name));
        stored.map_or(0, Value::weight)
    }

    fn map_set(
        &mut self,
        name: &Rc<str>,
        key: &Rc<str>,
        value: &Value,
        replaces: bool,
    ) -> Result<Value, String> {
        let mut entries = match self.values.get(name) {
            None => BTreeMap::new(),
            Some(value) => value
                .as_map()
                .cloned()
                .ok_or_else(|| format!("{name:?} is not a map"))?,
        };
        if replaces || !entries.contains_key(key) {
            entries.insert(Rc::clone(key), value.clone());
            self.values.insert(Rc::clone(name), Value::map(entries)?);
        }
        Ok("".into())
    }
}

fn text(value: &Value) -> Result<&Rc<str>, String> {
    value
        .as_text()
        .ok_or_else(|| format!("a key is a text, not a value of type {}", value.type_name()))
}
