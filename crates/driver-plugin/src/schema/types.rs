//! Type expressions, such as `list(map(string))`, and the conversion of values to them.
//!
//! Source: the behaviour that the public documentation of HCL's type system describes.

use std::collections::BTreeMap;

use hcl_edit::expr::{Expression, Object, ObjectKey};
use serde_json::{Map, Value};

use super::path::{DEPTH_MAX, join};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Any,
    Text,
    Number,
    Bool,
    List(Box<Type>),
    Set(Box<Type>),
    Map(Box<Type>),
    Object(BTreeMap<String, Type>),
    Tuple(Vec<Type>),
}

impl Type {
    /// # Errors
    /// The expression is no type.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("the plugin's schema has {text:?}, which is no type");
        let expression: Expression = text.parse().map_err(|_| wrong())?;
        Self::of(&expression, 0).ok_or_else(wrong)
    }

    fn of(expression: &Expression, depth: usize) -> Option<Self> {
        if depth > DEPTH_MAX {
            return None;
        }
        match expression {
            Expression::Variable(name) => match name.as_str() {
                "any" => Some(Self::Any),
                "string" => Some(Self::Text),
                "number" => Some(Self::Number),
                "bool" => Some(Self::Bool),
                _ => None,
            },
            Expression::FuncCall(call) => {
                let mut args = call.args.iter();
                let (arg, None) = (args.next()?, args.next()) else {
                    return None;
                };
                let element = || Some(Box::new(Self::of(arg, depth + 1)?));
                match call.name.name.as_str() {
                    "list" => Some(Self::List(element()?)),
                    "set" => Some(Self::Set(element()?)),
                    "map" => Some(Self::Map(element()?)),
                    "object" => Some(Self::Object(fields(arg.as_object()?, depth)?)),
                    "tuple" => {
                        let items = arg.as_array()?.iter();
                        let types = items.map(|item| Self::of(item, depth + 1));
                        Some(Self::Tuple(types.collect::<Option<_>>()?))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns `value` in this type; null is of every type.
    ///
    /// # Errors
    /// The field that is of another type, below `at`.
    pub(super) fn convert(&self, value: &Value, at: &str) -> Result<Value, String> {
        match (self, value) {
            (_, Value::Null) => Ok(Value::Null),
            (Self::Any, value) => Ok(value.clone()),
            (Self::Text, _) => text(value)
                .map(Value::String)
                .ok_or_else(|| mismatch(at, "a string", value)),
            (Self::Number, Value::Number(_)) => Ok(value.clone()),
            (Self::Number, Value::String(text)) => {
                number(text).ok_or_else(|| mismatch(at, "a number", value))
            }
            (Self::Bool, Value::Bool(_)) => Ok(value.clone()),
            (Self::Bool, Value::String(text)) => match text.as_str() {
                "true" | "1" => Ok(Value::Bool(true)),
                "false" | "0" => Ok(Value::Bool(false)),
                _ => Err(mismatch(at, "true or false", value)),
            },
            (Self::List(element), Value::Array(items)) => {
                Ok(Value::Array(element.convert_all(items, at)?))
            }
            (Self::Set(element), Value::Array(items)) => {
                let items = element.convert_all(items, at)?;
                Ok(Value::Array(without_repetitions(items)))
            }
            // One block of options that may be repeated.
            (Self::List(element) | Self::Set(element), Value::Object(_))
                if matches!(**element, Self::Map(_) | Self::Object(_) | Self::Any) =>
            {
                Ok(Value::Array(vec![element.convert(value, at)?]))
            }
            (Self::Map(_) | Self::Object(_), Value::Array(blocks)) => {
                let merged = merge(blocks).ok_or_else(|| mismatch(at, "a map", value))?;
                self.convert(&Value::Object(merged), at)
            }
            (Self::Map(element), Value::Object(fields)) => {
                let mut found = Map::new();
                for (name, value) in fields {
                    found.insert(name.clone(), element.convert(value, &join(at, name))?);
                }
                Ok(Value::Object(found))
            }
            (Self::Object(types), Value::Object(fields)) => object(types, fields, at),
            (Self::Tuple(types), Value::Array(items)) if types.len() == items.len() => {
                let pairs = types.iter().zip(items).enumerate();
                pairs
                    .map(|(number, (kind, item))| kind.convert(item, &format!("{at}[{number}]")))
                    .collect()
            }
            (Self::Tuple(types), _) => Err(mismatch(
                at,
                &format!("a list of {} items", types.len()),
                value,
            )),
            (Self::Number, _) => Err(mismatch(at, "a number", value)),
            (Self::Bool, _) => Err(mismatch(at, "true or false", value)),
            (Self::List(_) | Self::Set(_), _) => Err(mismatch(at, "a list", value)),
            (Self::Map(_) | Self::Object(_), _) => Err(mismatch(at, "a map", value)),
        }
    }

    fn convert_all(&self, items: &[Value], at: &str) -> Result<Vec<Value>, String> {
        let numbered = items.iter().enumerate();
        numbered
            .map(|(number, item)| self.convert(item, &format!("{at}[{number}]")))
            .collect()
    }
}

fn fields(object: &Object, depth: usize) -> Option<BTreeMap<String, Type>> {
    let mut types = BTreeMap::new();
    for (key, value) in object.iter() {
        let name = match key {
            ObjectKey::Ident(name) => name.as_str().to_owned(),
            ObjectKey::Expression(name) => name.as_str()?.to_owned(),
        };
        types.insert(name, Type::of(value.expr(), depth + 1)?);
    }
    Some(types)
}

fn object(
    types: &BTreeMap<String, Type>,
    fields: &Map<String, Value>,
    at: &str,
) -> Result<Value, String> {
    if let Some(unknown) = fields.keys().find(|name| !types.contains_key(*name)) {
        let at = join(at, unknown);
        return Err(format!("{at}: unknown option: remove it"));
    }
    let mut found = Map::new();
    for (name, kind) in types {
        let at = join(at, name);
        let value = fields.get(name);
        let value = value.ok_or_else(|| format!("{at}: missing: write a value"))?;
        found.insert(name.clone(), kind.convert(value, &at)?);
    }
    Ok(Value::Object(found))
}

/// Returns the fields of repeated blocks; later ones override. `None`: one is no block.
fn merge(blocks: &[Value]) -> Option<Map<String, Value>> {
    let mut fields = Map::new();
    for block in blocks {
        fields.extend(block.as_object()?.clone());
    }
    Some(fields)
}

/// Returns the values without repetitions, in the order of their first.
pub(super) fn without_repetitions(values: Vec<Value>) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.into());
    }
    let number = serde_json::Number::from_f64(text.parse().ok()?)?;
    Some(Value::Number(number))
}

fn mismatch(at: &str, want: &str, value: &Value) -> String {
    let got = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    };
    format!("{at}: want {want}, got {got}")
}
